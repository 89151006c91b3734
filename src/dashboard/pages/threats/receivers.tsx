import type { Sink, Webhook } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { Badge } from '../../parts/badge.tsx'
import { Answered } from '../../parts/states.tsx'
import { healthOf } from '../webhooks/webhook-health.ts'

/** Where threats are reported, and whether they arrive. For administrators only. */
export function Receivers() {
  const { answer: me } = useAsked('getMe', {})
  if (me === null || !me.scopes.includes('admin')) return null
  return (
    <section class="card" aria-labelledby="receivers">
      <h2 id="receivers">Receivers</h2>
      <Webhooks />
      {me.apps === '*' && <Sinks />}
    </section>
  )
}

function Webhooks() {
  const used = useAsked('listWebhooks', { query: { limit: 100 } }, { everyMs: 30_000 })
  return <Answered used={used}>{({ webhooks }) => <List of={webhooks.filter(isForThreats)} />}</Answered>
}

function Sinks() {
  const used = useAsked('listSinks', {}, { everyMs: 30_000 })
  return (
    <Answered used={used}>
      {({ sinks }) =>
        sinks.length > 0 && (
          <ul class="plain">
            {sinks.map((sink) => (
              <li key={sink.place} class="break">
                {sink.place} <Badge of={sink.state === 'behind' ? 'warn' : 'good'} text={stateOf(sink)} />
              </li>
            ))}
          </ul>
        )
      }
    </Answered>
  )
}

function stateOf({ state, waiting }: Sink): string {
  if (waiting === 0) return 'up to date'
  return state === 'behind' ? `behind: ${waiting} waiting` : `${waiting} waiting`
}

function List({ of }: { readonly of: readonly Webhook[] }) {
  if (of.length === 0)
    return (
      <p>
        No webhook receives threats. <a href="/dashboard/webhooks">Add a webhook</a>
      </p>
    )
  return (
    <ul class="plain">
      {of.map((webhook) => {
        const { state, text } = healthOf(webhook)
        return (
          <li key={webhook.id}>
            <a href={`/dashboard/webhooks/${webhook.id}`}>{hostOf(webhook.url)}</a>{' '}
            <Badge of={state} text={text} />
            {webhook.pending > 0 && ` ${webhook.pending} pending`}
          </li>
        )
      })}
    </ul>
  )
}

function isForThreats({ events }: Webhook): boolean {
  return events.includes('threat_detected')
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url
}
