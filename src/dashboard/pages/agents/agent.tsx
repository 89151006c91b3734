import { useRoute } from 'preact-iso'
import type { AgentDetail } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { Badge } from '../../parts/badge.tsx'
import { useChosenApp, withApp, withQuery } from '../../parts/chosen/app.ts'
import { useWindow } from '../../parts/chosen/window.ts'
import { WindowChoice } from '../../parts/chosen/window-choice.tsx'
import { Facts, Outside } from '../../parts/facts.tsx'
import { counted, percent, whole } from '../../parts/format.ts'
import { Page } from '../../parts/page.tsx'
import { Plot } from '../../parts/plots/plot.tsx'
import { RuleLink } from '../../parts/rule-link.tsx'
import { Answered, Empty } from '../../parts/states.tsx'
import { FullTime, Time } from '../../parts/time.tsx'
import { subjectOf, textAt, TITLES } from '../events/event-words.ts'
import { categoryOf, purposeOf } from '../live/names.ts'
import { Table } from '../../parts/table.tsx'
import { AgentCardSection } from './agent-card.tsx'
import { AgentFingerprintsSection } from './agent-fingerprints.tsx'
import { AgentRobotsSection } from './agent-robots.tsx'
import { AgentRulesSection } from './agent-rules.tsx'

export function AgentPage() {
  const { params } = useRoute()
  const id = params['agent_id']!
  const app = useChosenApp()
  const used = useAsked('getAgent', { path: { agent_id: id } })
  return (
    <Page
      title={used.answer?.name ?? 'Agent'}
      help="verified-agents"
      about={<a href="/dashboard/agents">All agents</a>}
      actions={
        <>
          <a class="button" href={withApp('/dashboard/traffic', app, { agent_id: id })}>
            Its requests
          </a>
          <RuleLink app={app} filters={{ agent_id: used.answer?.id ?? '' }} isButton />
        </>
      }
    >
      <Answered used={used}>
        {(agent) => (
          <>
            <About agent={agent} />
            {isSigning(agent) && <AgentCardSection id={agent.id} />}
            <Traffic id={agent.id} />
            <AgentRulesSection id={agent.id} />
            <Threats id={agent.id} />
            <AgentFingerprintsSection id={agent.id} />
            {agent.robots_token !== null && <AgentRobotsSection id={agent.id} />}
            <Signatures agent={agent} />
            <Recently id={agent.id} />
          </>
        )}
      </Answered>
    </Page>
  )
}

function isSigning({ verification }: AgentDetail): boolean {
  return verification.methods.includes('web-bot-auth')
}

function About({ agent }: { readonly agent: AgentDetail }) {
  const { description, vendor, homepage, documentation, category, kind, sightings, verification } = agent
  return (
    <section class="card" aria-labelledby="about">
      <h2 id="about">About</h2>
      {description !== '' && <p>{description}</p>}
      <Facts
        of={[
          ['Category', category === null ? kind : categoryOf(category)],
          [
            'Purpose',
            agent.purpose_sources
              .map(({ purpose, source, date }) => `${purposeOf(purpose)} (${source}, ${date})`)
              .join(', '),
          ],
          ['Vendor', vendor],
          ['Homepage', <Outside key="home" url={homepage} />],
          [
            'Documentation',
            documentation === null || documentation === homepage ? null : (
              <Outside key="documentation" url={documentation} />
            ),
          ],
          ['Last seen', <Time key="last" at={agent.last_seen} />],
          ['Known since', <FullTime key="first" at={agent.first_seen} />],
          [
            'Requests',
            `${whole(sightings['24h'])} in 24 hours, ${whole(sightings['7d'])} in 7 days, ${whole(sightings.total)} in total`,
          ],
          [
            'Verified by',
            verification.sources.map(({ method, source }) => `${method} (${source})`).join(', ') ||
              'nothing: any client can claim this name',
          ],
          ['robots.txt token', agent.robots_token],
          ['User-Agent', agent.user_agent_patterns.map(({ pattern }) => pattern).join(', ')],
          ['Versions seen', agent.versions.join(', ')],
        ]}
      />
    </section>
  )
}

function Traffic({ id }: { readonly id: string }) {
  const window = useWindow()
  const used = useAsked('getAgentTraffic', { path: { agent_id: id }, query: { window } }, { everyMs: 10_000 })
  return (
    <section class="card" aria-labelledby="traffic">
      <div class="page-head">
        <h2 id="traffic">Requests</h2>
        <WindowChoice />
      </div>
      <Answered used={used}>
        {({ series, requests, blocked }) =>
          requests === 0 ? (
            <Empty title="No requests in this time range" />
          ) : (
            <>
              <p>
                {counted(requests, 'request')}, {whole(blocked)} blocked.
              </p>
              <Plot
                title="Requests"
                at={series.map(({ at }) => Date.parse(at) / 1_000)}
                isStacked
                isBars
                lines={[
                  { label: 'Blocked', colour: 'blocked', values: series.map(({ blocked }) => blocked) },
                  {
                    label: 'Not blocked',
                    colour: 'requests',
                    values: series.map(({ requests, blocked }) => requests - blocked),
                  },
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
      <h2 id="signatures">Known fingerprints</h2>
      {signatures.length === 0 ? (
        <Empty title="No known fingerprints">
          <p>
            It is recognized by its User-Agent and by verification. Its TLS handshake is that of a common
            library.
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
              title: 'Confidence',
              isNumber: true,
              isExtra: true,
              cell: ({ confidence }) => percent(confidence),
            },
            { title: 'Requests', isNumber: true, cell: ({ requests_seen }) => whole(requests_seen) },
            {
              title: 'Source',
              isExtra: true,
              cell: ({ status, source }) => (status === 'active' ? source : `${source}, ${status}`),
            },
          ]}
        />
      )}
      <p>
        <a href={`/dashboard/signatures?agent_id=${encodeURIComponent(id)}`}>All signatures of this agent</a>
      </p>
    </section>
  )
}

function Threats({ id }: { readonly id: string }) {
  const used = useAsked('listEvents', { query: { agent: id, types: 'threat_detected', limit: 5 } })
  return (
    <section class="card" aria-labelledby="threats">
      <h2 id="threats">Threats</h2>
      <Answered used={used}>
        {({ events, total }) =>
          total === 0 ? (
            <Empty title="No threats about this agent" />
          ) : (
            <>
              <ul>
                {events.map((event) => (
                  <li key={event.id}>
                    <Badge of={textAt(event.data, 'severity') ?? 'plain'} />{' '}
                    <a href={`/dashboard/events/${event.id}`}>{subjectOf(event)}</a>,{' '}
                    <Time at={event.timestamp} />
                  </li>
                ))}
              </ul>
              <p>
                <a
                  href={withQuery('/dashboard/events', { agent: id, types: 'threat_detected' })}
                >{`All threats (${whole(total)})`}</a>
              </p>
            </>
          )
        }
      </Answered>
    </section>
  )
}

function Recently({ id }: { readonly id: string }) {
  const used = useAsked('listEvents', { query: { agent: id, limit: 5 } })
  return (
    <section class="card" aria-labelledby="events">
      <h2 id="events">Events</h2>
      <Answered used={used}>
        {({ events, total }) =>
          total === 0 ? (
            <Empty title="No events yet" />
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
                <a href={`/dashboard/events?agent=${encodeURIComponent(id)}`}>All events ({whole(total)})</a>
              </p>
            </>
          )
        }
      </Answered>
    </section>
  )
}
