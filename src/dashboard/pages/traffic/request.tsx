import { useRoute } from 'preact-iso'
import type { Request } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { Badge } from '../../parts/badge.tsx'
import { explainedAt, withApp } from '../../parts/chosen/app.ts'
import { Facts } from '../../parts/facts.tsx'
import { percent } from '../../parts/format.ts'
import { conditionsOf } from '../../parts/made-rule.ts'
import { Page } from '../../parts/page.tsx'
import { Preformatted } from '../../parts/preformatted.tsx'
import { madeRuleAt } from '../../parts/rule-link.tsx'
import { Answered } from '../../parts/states.tsx'
import { FullTime } from '../../parts/time.tsx'
import { categoryOf, purposesText } from '../live/names.ts'
import { ClientTimeline } from './client-timeline.tsx'
import { RequestEvidenceSection } from './request-evidence.tsx'
import { actionText, layerText, networkText, whoOf } from './request-words.ts'

/** What is known of one request. */
export function RequestPage() {
  const { params } = useRoute()
  const used = useAsked('getRequest', { path: { id: params['id']! } })
  return (
    <Page title="Request" help="dashboard#traffic" about={<a href="/dashboard/traffic">All requests</a>}>
      <Answered used={used}>
        {(request) => (
          <>
            <Decision request={request} />
            <div class="grid">
              <Client request={request} />
              <Fingerprints request={request} />
              <Similar request={request} />
              <Rules request={request} />
            </div>
            <RequestEvidenceSection key={`evidence ${request.id}`} id={request.id} />
            <ClientTimeline key={request.id} request={request} />
            <details>
              <summary>JSON</summary>
              <Preformatted label="JSON" text={JSON.stringify(request, null, 2)} />
            </details>
          </>
        )}
      </Answered>
    </Page>
  )
}

interface Props {
  readonly request: Request
}

function Decision({ request }: Props) {
  const { method, host, path, seen_at, proxy, app, action, rule, dry_run, id } = request
  return (
    <section class="card" aria-labelledby="what">
      <h2 id="what" class="break">
        {method} {host}
        {path}
      </h2>
      <Facts
        of={[
          ['When', <FullTime at={seen_at} />],
          ['Action', <Badge of={action} text={actionText(request)} />],
          ['Rule', rule === 'otherwise' ? 'none matched' : rule],
          ['It stands', layerText(request)],
          ['On trial', dry_run === null ? null : `a rule on trial would have done: ${dry_run}`],
          ['App', app],
          ['Proxy', proxy],
          ['Id', <span class="mono">{id}</span>],
        ]}
      />
      <p>
        <a href={explainedAt(request)}>Explain this decision rule by rule</a>
      </p>
    </section>
  )
}

function Client({ request }: Props) {
  const { verdict, confidence, agent_id, software_id, verified, identity, campaign_id } = request
  const { agent_category, agent_purpose, address, user_agent, conflicts } = request
  const { mcp_method, mcp_tool, network } = request
  const known = agent_id ?? software_id
  return (
    <section class="card" aria-labelledby="who">
      <h2 id="who">Who it was</h2>
      <Facts
        of={[
          ['Verdict', <Badge of={verdict} text={`${verdict}, ${percent(confidence)} sure`} />],
          [
            'Name',
            known === null ? null : (
              <a href={`/dashboard/agents/${encodeURIComponent(known)}`}>{whoOf(request)}</a>
            ),
          ],
          ['Category', agent_category === null ? null : categoryOf(agent_category)],
          ['Purpose', purposesText(agent_purpose)],
          ['Proven by', verified],
          ['Proof', agent_id !== null && verified === null ? 'none: the name is a claim' : null],
          ['Signed by', identity],
          ['Contradicted by', conflicts.join(', ').replaceAll('-', ' ')],
          ['Address', <span class="mono">{address}</span>],
          [
            'Network',
            network === null ? null : (
              <a href={withApp('/dashboard/traffic', null, { asn: String(network.asn) })}>
                {networkText(network)}
              </a>
            ),
          ],
          ['Country', network?.country ?? null],
          ['User-Agent', user_agent === null ? 'none' : <span class="mono break">{user_agent}</span>],
          ['MCP method', mcp_method],
          ['MCP tool', mcp_tool],
          [
            'Campaign',
            campaign_id === null ? null : (
              <a href={`/dashboard/threats/campaigns/${encodeURIComponent(campaign_id)}`}>{campaign_id}</a>
            ),
          ],
        ]}
      />
    </section>
  )
}

function Fingerprints({ request: { fingerprints } }: Props) {
  return (
    <section class="card" aria-labelledby="fingerprints">
      <h2 id="fingerprints">Fingerprints</h2>
      <Facts
        of={Object.entries(fingerprints).map(([type, value]) => [
          type.toUpperCase(),
          value === '' ? null : (
            <a class="mono break" href={`/dashboard/signatures/${type}/${encodeURIComponent(value)}`}>
              {value}
            </a>
          ),
        ])}
      />
    </section>
  )
}

/** The way to other requests that have something in common with this one. */
function Similar({ request }: Props) {
  const { address, agent_id, app, host, path, fingerprints, campaign_id } = request
  const to = (filters: Readonly<Record<string, string>>) => withApp('/dashboard/traffic', null, filters)
  const network = networkOf(address)
  return (
    <section class="card" aria-labelledby="similar">
      <h2 id="similar">Similar requests</h2>
      <ul>
        <li>
          <a href={to({ address })}>from {address}</a>
        </li>
        {network !== null && (
          <li>
            <a href={to({ address: network })}>from the network {network}</a>
          </li>
        )}
        {agent_id !== null && (
          <li>
            <a href={to({ agent_id })}>of the same agent</a>
          </li>
        )}
        {fingerprints.ja4 !== '' && (
          <li>
            <a href={to({ ja4: fingerprints.ja4 })}>with the same JA4</a>
          </li>
        )}
        <li>
          <a href={to({ ...(host !== null && { host }), path })}>to the same path</a>
        </li>
        <li>
          <a href={to({ app })}>to the app {app}</a>
        </li>
        {campaign_id !== null && (
          <li>
            <a href={to({ campaign_id })}>of the same campaign</a>
          </li>
        )}
      </ul>
    </section>
  )
}

/** The way to a rule for requests like this one. */
function Rules({ request }: Props) {
  const { answer: me } = useAsked('getMe', {})
  if (me === null || !me.scopes.includes('admin')) return null
  const { address, agent_id, host, path, fingerprints, campaign_id, app } = request
  const network = networkOf(address)
  const choices: readonly (readonly [text: string, filters: Readonly<Record<string, string | null>>])[] = [
    ['of the same agent', { agent_id }],
    ['with the same JA4', { ja4: fingerprints.ja4 }],
    ['with the same JA4H', { ja4h: fingerprints.ja4h }],
    [`from ${address}`, { address }],
    [`from the network ${network}`, { address: network }],
    ['to the same path', { host, path }],
    ['of the same campaign', { campaign_id }],
  ]
  // Callers with some apps have no policy of the organisation.
  const owner = me.apps === '*' ? null : app
  return (
    <section class="card" aria-labelledby="rules">
      <h2 id="rules">Make a rule for requests</h2>
      <p class="hint">It opens in the policy editor, on trial, with its effect on recorded requests.</p>
      <ul>
        {choices.map(([text, filters]) => {
          const given = Object.entries(filters).filter((each): each is [string, string] => each[1] !== null)
          const when = conditionsOf(Object.fromEntries(given))
          return (
            when !== null && (
              <li key={text}>
                <a href={madeRuleAt(owner, when)}>{text}</a>
              </li>
            )
          )
        })}
      </ul>
    </section>
  )
}

/** The /24 of an IPv4 address. `null` where a network is shown, and for IPv6, which has other forms. */
function networkOf(address: string): string | null {
  const parts = /^(\d+\.\d+\.\d+)\.\d+$/.exec(address)
  return parts === null ? null : `${parts[1]}.0/24`
}
