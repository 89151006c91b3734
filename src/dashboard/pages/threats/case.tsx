import { useRoute } from 'preact-iso'
import type { Case, Event } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { Badge } from '../../parts/badge.tsx'
import { DEFAULT_APP, withApp } from '../../parts/chosen/app.ts'
import { Facts } from '../../parts/facts.tsx'
import { counted, whole } from '../../parts/format.ts'
import { Page } from '../../parts/page.tsx'
import { RuleLink } from '../../parts/rule-link.tsx'
import { Answered, Empty } from '../../parts/states.tsx'
import { Table } from '../../parts/table.tsx'
import { FullTime, Time } from '../../parts/time.tsx'
import { textAt } from '../events/event-words.ts'
import { requestFiltersOf, STATUS_LOOK, STATUS_TEXT, titleOf } from './case-words.ts'
import { StatusButtons } from './status-buttons.tsx'

export function CasePage() {
  const { params } = useRoute()
  const used = useAsked('getCase', { path: { id: params['id']! } }, { everyMs: 10_000 })
  const { answer, tag, again } = used
  return (
    <Page
      title={answer === null ? 'Case' : titleOf(answer)}
      help="events#cases"
      about={<a href="/dashboard/threats">All threats</a>}
      actions={answer !== null && <Ways found={answer} />}
    >
      <Answered used={used}>
        {(found) => (
          <>
            <About found={found} tag={tag} again={again} />
            <Evidence found={found} />
          </>
        )}
      </Answered>
    </Page>
  )
}

/** To its requests, and to a rule for them. */
function Ways({ found }: { readonly found: Case }) {
  const filters = requestFiltersOf(found)
  return (
    <>
      <a class="button" href={withApp('/dashboard/traffic', found.app, filters)}>
        Its requests
      </a>
      <RuleLink app={found.app === DEFAULT_APP ? null : found.app} filters={filters} isButton />
    </>
  )
}

interface Props {
  readonly found: Case
  readonly tag: string | null
  again(): void
}

function About({ found, tag, again }: Props) {
  const { status, severity, app, campaign_id, agent_id, ja4, address, note, feedback } = found
  return (
    <section class="card" aria-labelledby="about">
      <h2 id="about">About</h2>
      <Facts
        of={[
          ['Status', <Badge key="status" of={STATUS_LOOK[status]} text={STATUS_TEXT[status]} />],
          ['Severity', <Badge key="severity" of={severity} />],
          ['App', app ?? 'not about one app'],
          [
            'Campaign',
            campaign_id !== null && (
              <a href={`/dashboard/threats/campaigns/${encodeURIComponent(campaign_id)}`}>{campaign_id}</a>
            ),
          ],
          [
            'Agent',
            agent_id !== null && <a href={`/dashboard/agents/${encodeURIComponent(agent_id)}`}>{agent_id}</a>,
          ],
          [
            'JA4',
            ja4 !== null && (
              <a class="mono break" href={`/dashboard/signatures/ja4/${encodeURIComponent(ja4)}`}>
                {ja4}
              </a>
            ),
          ],
          ['Network', address],
          ['First', <FullTime key="first" at={found.first_at} />],
          ['Latest', <FullTime key="latest" at={found.last_at} />],
          ['Requests', `${whole(found.requests)}, reported in ${counted(found.events, 'event')}`],
          [
            'Changed',
            found.changed_at !== null && (
              <>
                <Time at={found.changed_at} /> by {found.changed_by}
              </>
            ),
          ],
          ['Note', note],
          ['Feedback', feedback > 0 && `given on ${counted(feedback, 'decision')}`],
        ]}
      />
      <StatusButtons found={found} tag={tag} again={again} />
    </section>
  )
}

function Evidence({ found: { id, events: total } }: Pick<Props, 'found'>) {
  const used = useAsked('listEvents', { query: { case_id: id, limit: SHOWN } }, { everyMs: 10_000 })
  return (
    <section class="card" aria-labelledby="evidence">
      <h2 id="evidence">Evidence</h2>
      <Answered used={used}>
        {({ events }) =>
          events.length === 0 ? (
            <Empty title="The events of this case are no longer kept" />
          ) : (
            <>
              {events.length < total && (
                <p class="soft">
                  The newest {whole(events.length)} of {counted(total, 'event')}.
                </p>
              )}
              <Table label="Evidence" rows={events} keyOf={({ id: event }) => event} columns={COLUMNS} />
            </>
          )
        }
      </Answered>
    </section>
  )
}

const COLUMNS = [
  {
    title: 'When',
    cell: ({ id, timestamp }: Event) => (
      <a href={`/dashboard/events/${id}`}>
        <Time at={timestamp} />
      </a>
    ),
  },
  { title: 'Why', cell: ({ data }: Event) => textAt(data, 'detail') },
  { title: 'Address', cell: ({ data }: Event) => textAt(data, 'request', 'address') },
  {
    title: 'Request',
    isExtra: true,
    cell: ({ data }: Event) => {
      const id = textAt(data, 'detection', 'request_id')
      const [host, path] = [textAt(data, 'request', 'host'), textAt(data, 'request', 'path')]
      const text = `${host ?? ''}${path ?? ''}`
      return id === null ? text : <a href={`/dashboard/traffic/${encodeURIComponent(id)}`}>{text || id}</a>
    },
  },
  { title: 'Action', isExtra: true, cell: ({ data }: Event) => textAt(data, 'action') },
  {
    title: 'Requests',
    isNumber: true,
    isExtra: true,
    cell: ({ data }: Event) => (typeof data['count'] === 'number' ? whole(data['count']) : ''),
  },
]
const SHOWN = 50
