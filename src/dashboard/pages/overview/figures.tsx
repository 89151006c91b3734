import type { ComponentChildren } from 'preact'
import type { Fleet, Statistics } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { withQuery } from '../../parts/chosen/app.ts'
import { WINDOW_WORDS } from '../../parts/chosen/window.ts'
import { percent, short } from '../../parts/format.ts'
import { changeOf, isBeforeKnown } from './change.ts'
import type { OverviewScope } from './overview.tsx'

interface Props {
  readonly statistics: Statistics
  readonly shown: OverviewScope
}

/** The sums of the time range. */
export function Figures({ statistics, shown }: Props) {
  const { answer: me } = useAsked('getMe', {})
  const { detection, previous } = statistics
  const { requests, agents, verified, by_verdict, by_action, blocked_by_verdict } = detection
  const before = previous !== null && isBeforeKnown(statistics) ? previous.detection : null
  const isOfAll = me?.apps === '*' && Object.keys(shown.chosen).length === 0
  const { to } = shown
  return (
    <>
      <dl class="figures">
        <Figure name="Requests" value={requests} before={before?.requests} href={to({})} />
        <Figure
          name="From agents"
          value={agents}
          before={before?.agents}
          of={requests}
          href={to({ verdict: 'agent' })}
        />
        <Figure
          name="From people"
          value={by_verdict['human'] ?? 0}
          before={before?.by_verdict['human']}
          of={requests}
          href={to({ verdict: 'human' })}
        />
        <Figure
          name="Verified"
          value={verified}
          before={before?.verified}
          of={agents}
          ofWhat="of agents"
          href={to({ verified: 'true' })}
        />
        <Figure
          name="Blocked"
          value={by_action['block'] ?? 0}
          before={before?.by_action['block']}
          href={to({ action: 'block' })}
        />
        <Figure
          name="People blocked"
          value={blocked_by_verdict['human'] ?? 0}
          before={before?.blocked_by_verdict['human']}
          href={to({ verdict: 'human', action: 'block' })}
        />
        <Figure
          name="Rate limited"
          value={by_action['rate_limit'] ?? 0}
          before={before?.by_action['rate_limit']}
          href={to({ action: 'rate_limit' })}
        />
        <Figure
          name="Slowed down"
          value={by_action['tarpit'] ?? 0}
          before={before?.by_action['tarpit']}
          href={to({ action: 'tarpit' })}
        />
        <Threats shown={shown} />
        {isOfAll && <Campaigns />}
        {isOfAll && me.scopes.includes('admin') && <FleetHealth />}
      </dl>
      <p class="soft">
        All requests are counted
        {before === null
          ? '. Nothing is known yet of the time before, to compare with.'
          : `, and compared with the ${WINDOW_WORDS[shown.window]} before.`}{' '}
        The list behind a number has the recorded requests, which may be fewer.
      </p>
    </>
  )
}

interface FigureProps {
  readonly name: string
  readonly value: number
  readonly href: string
  readonly before?: number | undefined
  /** Shows the share of it. */
  readonly of?: number
  readonly ofWhat?: string
}

function Figure({ name, value, href, before, of = 0, ofWhat = '' }: FigureProps) {
  const notes = [
    ...(of > 0 ? [`${percent(value / of)} ${ofWhat}`.trim()] : []),
    ...(before === undefined ? [] : [changeOf(value, before)]),
  ]
  return (
    <Stated name={name} href={href} note={notes.join(' · ')}>
      {short(value)}
    </Stated>
  )
}

interface StatedProps {
  readonly name: string
  readonly href: string
  readonly note?: string
  readonly children: ComponentChildren
}

function Stated({ name, href, note = '', children }: StatedProps) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <a href={href}>{children}</a>
        {note !== '' && <small>{note}</small>}
      </dd>
    </div>
  )
}

function Threats({ shown: { chosen } }: { readonly shown: OverviewScope }) {
  const query = { status: 'open' as const, limit: 1, ...chosen }
  const { answer } = useAsked('listCases', { query }, { everyMs: 30_000 })
  return (
    <Stated name="Open threats" href={withQuery('/dashboard/threats', { ...chosen })}>
      {answer === null ? '–' : short(answer.total)}
    </Stated>
  )
}

function Campaigns() {
  const { answer } = useAsked('listCampaigns', { query: { limit: 50 } }, { everyMs: 30_000 })
  const running = answer?.campaigns.filter(({ state }) => state === 'running').length
  return (
    <Stated name="Running campaigns" href="/dashboard/threats/campaigns">
      {running === undefined ? '–' : short(running)}
    </Stated>
  )
}

function FleetHealth() {
  const { answer } = useAsked('getFleet', {}, { everyMs: 10_000 })
  const { serving, total, what } = answer === null ? NO_FLEET : healthOf(answer)
  return (
    <Stated name="Fleet" href="/dashboard/fleet" note={total === 0 ? '' : what}>
      {total === 0 ? '–' : `${short(serving)} of ${short(total)}`}
    </Stated>
  )
}

function healthOf({ proxies, instances }: Fleet) {
  if (proxies !== null) return { serving: proxies.serving, total: proxies.total, what: 'proxies serve' }
  const serving = instances.filter(({ state }) => state === 'serving').length
  return { serving, total: instances.length, what: 'workers serve' }
}

const NO_FLEET = { serving: 0, total: 0, what: '' }
