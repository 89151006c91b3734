import { useLocation, useRoute } from 'preact-iso'
import type { AgentDetail } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { Badge } from '../../parts/badge.tsx'
import { Facts } from '../../parts/facts.tsx'
import { counted, percent, whole } from '../../parts/format.ts'
import { Page } from '../../parts/page.tsx'
import { Plot } from '../../parts/plot.tsx'
import { Answered, Empty } from '../../parts/states.tsx'
import { FullTime, Time } from '../../parts/time.tsx'
import { subjectOf, TITLES } from '../events/event-words.ts'
import { categoryOf } from '../live/names.ts'
import { WindowChoice, windowIn } from '../live/window-choice.tsx'
import { Table } from '../../parts/table.tsx'

export function AgentPage() {
  const { params } = useRoute()
  const id = params['agent_id']!
  const used = useAsked('getAgent', { path: { agent_id: id } })
  return (
    <Page title={used.answer?.name ?? 'Agent'} about={<a href="/dashboard/agents">All agents</a>}>
      <Answered used={used}>
        {(agent) => (
          <>
            <About agent={agent} />
            <Traffic id={agent.id} />
            <Signatures agent={agent} />
            <Recently id={agent.id} />
          </>
        )}
      </Answered>
    </Page>
  )
}

function About({ agent }: { readonly agent: AgentDetail }) {
  const { description, vendor, homepage, documentation, category, kind, sightings, verification } = agent
  return (
    <section class="card" aria-labelledby="about">
      <h2 id="about">What it is</h2>
      {description !== '' && <p>{description}</p>}
      <Facts
        of={[
          ['Category', category === null ? kind : categoryOf(category)],
          ['Of', vendor],
          ['Its page', <Outside key="home" url={homepage} />],
          [
            'Its documentation',
            documentation === homepage ? null : <Outside key="documentation" url={documentation} />,
          ],
          ['Last seen here', <Time key="last" at={agent.last_seen} />],
          ['Known since', <FullTime key="first" at={agent.first_seen} />],
          [
            'Requests here',
            `${whole(sightings['24h'])} in a day, ${whole(sightings['7d'])} in a week, ${whole(sightings.total)} in all`,
          ],
          [
            'Can be proven by',
            verification.sources.map(({ method, source }) => `${method} (${source})`).join(', ') ||
              'nothing: whoever uses its name may be anybody',
          ],
          ['In robots.txt', agent.robots_token],
          ['User-Agent', agent.user_agent_patterns.map(({ pattern }) => pattern).join(', ')],
          ['Versions seen', agent.versions.join(', ')],
        ]}
      />
    </section>
  )
}

/** A link from external data: only http and https URLs become links. */
function Outside({ url }: { readonly url: string | null }) {
  if (url === null) return null
  if (!/^https?:\/\//i.test(url)) return <>{url}</>
  return (
    <a href={url} rel="noopener noreferrer" target="_blank">
      {url}
    </a>
  )
}

function Traffic({ id }: { readonly id: string }) {
  const { query } = useLocation()
  const window = windowIn(query['window'])
  const used = useAsked('getAgentTraffic', { path: { agent_id: id }, query: { window } }, { everyMs: 10_000 })
  return (
    <section class="card" aria-labelledby="traffic">
      <div class="page-head">
        <h2 id="traffic">Its requests here</h2>
        <WindowChoice window={window} />
      </div>
      <Answered used={used}>
        {({ series, requests, blocked }) =>
          requests === 0 ? (
            <Empty title="None in this time." />
          ) : (
            <>
              <p>
                {counted(requests, 'request')}; blocked: {whole(blocked)}.
              </p>
              <Plot
                title="Requests"
                at={series.map(({ at }) => Date.parse(at) / 1_000)}
                lines={[
                  { label: 'All', colour: 'agent', values: series.map(({ requests }) => requests) },
                  { label: 'Blocked', colour: 'block', values: series.map(({ blocked }) => blocked) },
                ]}
              />
            </>
          )
        }
      </Answered>
    </section>
  )
}

function Signatures({ agent: { signatures, id } }: { readonly agent: AgentDetail }) {
  return (
    <section class="card" aria-labelledby="signatures">
      <h2 id="signatures">Its fingerprints</h2>
      {signatures.length === 0 ? (
        <Empty title="It is known by none.">
          <p>
            It is told by its User-Agent and its proofs: what it sends in TLS is what a common library sends.
          </p>
        </Empty>
      ) : (
        <Table
          label={`Signatures of ${id}`}
          rows={signatures}
          keyOf={({ type, fingerprint }) => type + fingerprint}
          columns={[
            {
              title: 'Fingerprint',
              cell: ({ type, fingerprint }) => (
                <>
                  <Badge of="plain" text={type} />{' '}
                  <a href={`/dashboard/signatures/${type}/${encodeURIComponent(fingerprint)}`}>
                    <code>{fingerprint}</code>
                  </a>
                </>
              ),
            },
            {
              title: 'Sure',
              isNumber: true,
              isExtra: true,
              cell: ({ confidence }) => percent(confidence),
            },
            { title: 'Requests', isNumber: true, cell: ({ requests_seen }) => whole(requests_seen) },
            {
              title: 'From',
              isExtra: true,
              cell: ({ status, source }) => (status === 'active' ? source : `${source}, ${status}`),
            },
          ]}
        />
      )}
      <p>
        <a href={`/dashboard/signatures?agent_id=${encodeURIComponent(id)}`}>All of its signatures</a>
      </p>
    </section>
  )
}

function Recently({ id }: { readonly id: string }) {
  const used = useAsked('listEvents', { query: { agent: id, limit: 5 } })
  return (
    <section class="card" aria-labelledby="events">
      <h2 id="events">What was told of it</h2>
      <Answered used={used}>
        {({ events, total }) =>
          total === 0 ? (
            <Empty title="Nothing so far." />
          ) : (
            <>
              <ul>
                {events.map((event) => (
                  <li key={event.id}>
                    <a href={`/dashboard/events/${event.id}`}>
                      {TITLES[event.type]}: {subjectOf(event)}
                    </a>
                    , <Time at={event.timestamp} />
                  </li>
                ))}
              </ul>
              <p>
                <a href={`/dashboard/events?agent=${encodeURIComponent(id)}`}>All {whole(total)}</a>
              </p>
            </>
          )
        }
      </Answered>
    </section>
  )
}
