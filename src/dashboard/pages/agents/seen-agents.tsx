import { useLocation } from 'preact-iso'
import { useState } from 'preact/hooks'
import type { AgentStatistics, Operations } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { type Chosen, withQuery } from '../../parts/chosen/app.ts'
import { type Window, WINDOW_WORDS, windowIn } from '../../parts/chosen/window.ts'
import { counted, percent, short } from '../../parts/format.ts'
import { Trend } from '../../parts/plots/trend.tsx'
import { Answered, Empty } from '../../parts/states.tsx'
import { Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { purposesText } from '../live/names.ts'

type Filters = Pick<Operations['getAgentStats']['query'], 'q' | 'category' | 'purpose'>

/** The agents that sent requests in the time range, the most requests first. */
export function SeenAgents({ filters, chosen }: { readonly filters: Filters; readonly chosen: Chosen }) {
  const { query } = useLocation()
  // The list below has all times; counts go back so far.
  const window = windowIn(query['window']) ?? '30d'
  const [limit, setLimit] = useState(FIRST)
  const asked = { ...filters, ...chosen, window, limit }
  const used = useAsked('getAgentStats', { query: asked }, { everyMs: 60_000 })
  return (
    <section class="card" aria-labelledby="seen">
      <h2 id="seen">Here in the last {WINDOW_WORDS[window]}</h2>
      <Answered used={used}>
        {(found) =>
          found.total === 0 ? (
            <Empty title="No requests of these agents in this time range" />
          ) : (
            <>
              <Table
                label="Agents with requests"
                rows={found.agents}
                keyOf={({ agent_id }) => agent_id}
                columns={columnsFor(window, chosen)}
              />
              {found.total > found.agents.length && (
                <p>
                  The first {found.agents.length} of {counted(found.total, 'agent')}.{' '}
                  {limit < MOST && (
                    <button type="button" onClick={() => setLimit(MOST)}>
                      Show more
                    </button>
                  )}
                </p>
              )}
            </>
          )
        }
      </Answered>
    </section>
  )
}

type SeenAgent = AgentStatistics['agents'][number]

function columnsFor(window: Window, chosen: Chosen) {
  return [
    {
      title: 'Name',
      cell: ({ agent_id, agent_name }: SeenAgent) => (
        <a href={withQuery(`/dashboard/agents/${encodeURIComponent(agent_id)}`, { window })}>{agent_name}</a>
      ),
    },
    {
      title: 'Requests',
      isNumber: true,
      cell: ({ agent_id, requests }: SeenAgent) => (
        <a href={withQuery('/dashboard/traffic', { ...chosen, agent_id, window })}>{short(requests)}</a>
      ),
    },
    {
      title: 'Trend',
      cell: ({ agent_name, series }: SeenAgent) => (
        <Trend label={`Requests of ${agent_name}`} counts={series} />
      ),
    },
    {
      title: 'Verified',
      isNumber: true,
      cell: ({ verified, requests }: SeenAgent) =>
        verified === null ? 'unknown' : percent(verified / Math.max(1, requests)),
    },
    {
      title: 'Blocked',
      isNumber: true,
      isExtra: true,
      cell: ({ blocked }: SeenAgent) => short(blocked),
    },
    {
      title: 'Purpose',
      isExtra: true,
      cell: ({ agent_purpose }: SeenAgent) => purposesText(agent_purpose),
    },
    { title: 'Operator', isExtra: true, cell: ({ vendor }: SeenAgent) => vendor },
    { title: 'Last seen', isExtra: true, cell: ({ last_seen }: SeenAgent) => <Time at={last_seen} /> },
  ]
}

const FIRST = 20
/** The API's maximum. */
const MOST = 200
