import { useLocation } from 'preact-iso'
import type { Statistics } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { Download } from '../../parts/download.tsx'
import { counted, percent, short, whole } from '../../parts/format.ts'
import { Plot } from '../../parts/plot.tsx'
import { Answered, Empty } from '../../parts/states.tsx'
import { CATEGORIES, PURPOSES, purposeOf, purposesText } from './names.ts'
import { WindowChoice, windowIn } from './window-choice.tsx'
import { Table } from '../../parts/table.tsx'

/** Traffic in the time window that the address names. */
export function Past() {
  const { query } = useLocation()
  const window = windowIn(query['window'])
  const used = useAsked('getStats', { query: { window } }, { everyMs: 5_000 })
  return (
    <section aria-labelledby="past">
      <div class="page-head">
        <h2 id="past">History</h2>
        <div class="actions">
          <WindowChoice window={window} />
          {used.answer?.window === window && <SavedAs statistics={used.answer} />}
        </div>
      </div>
      <Answered used={used}>{(statistics) => <Pictures statistics={statistics} />}</Answered>
    </section>
  )
}

function Pictures({ statistics }: { readonly statistics: Statistics }) {
  const { detection, series, agents } = statistics
  if (detection.requests === 0)
    return (
      <Empty title="No requests in this time range">
        <p>
          Send a request through the gateway: <code>curl --insecure https://HOST:8443/</code>. It appears here
          within a second.
        </p>
      </Empty>
    )
  const at = series.map((bucket) => Date.parse(bucket.at) / 1_000)
  return (
    <>
      <p>
        {counted(detection.requests, 'request')}, {percent(detection.rate)} of them from agents.{' '}
        {counted(agents.seen, 'named agent')} ({agents.new} new). {whole(detection.verified)} verified,{' '}
        {whole(detection.blocked)} blocked.
      </p>
      <div class="card">
        <Plot
          title="Agents by category"
          at={at}
          isStacked
          lines={CATEGORIES.map(({ category, label, colour }) => ({
            ...{ label, colour },
            values: series.map(({ by_category }) => by_category[category] ?? 0),
          }))}
        />
      </div>
      <div class="grid">
        <div class="card">
          <TopAgents detection={detection} />
        </div>
        <div class="card">
          <Purposes detection={detection} />
        </div>
        <div class="card">
          <Confidence by={detection.by_confidence} />
        </div>
      </div>
    </>
  )
}

function TopAgents({ detection: { by_agent, agents } }: Pick<Statistics, 'detection'>) {
  if (by_agent.length === 0)
    return (
      <Empty title="No named agents in this time range">
        <p>Requests from agents without a name are counted as unnamed.</p>
      </Empty>
    )
  return (
    <Table
      label="Agents with the most requests"
      rows={by_agent.slice(0, TOP)}
      keyOf={({ agent_id }) => agent_id}
      columns={[
        {
          title: 'Agent',
          cell: ({ agent_id, agent_name, requests }) => (
            <>
              <a href={`/dashboard/agents/${encodeURIComponent(agent_id)}`}>{agent_name}</a>
              <div class="bar" aria-hidden="true">
                <span style={{ width: `${(100 * requests) / Math.max(agents, 1)}%` }} />
              </div>
            </>
          ),
        },
        { title: 'Category', isExtra: true, cell: ({ agent_category }) => agent_category },
        { title: 'Purpose', isExtra: true, cell: ({ agent_purpose }) => purposesText(agent_purpose) },
        { title: 'Requests', isNumber: true, cell: ({ requests }) => short(requests) },
        { title: 'Blocked', isNumber: true, isExtra: true, cell: ({ blocked }) => short(blocked) },
      ]}
    />
  )
}

/** The most frequent first. A request of an agent with several purposes counts for each. */
function Purposes({ detection: { by_purpose, agents } }: Pick<Statistics, 'detection'>) {
  const rows = Object.entries(by_purpose)
    .filter(([, requests]) => requests > 0)
    .sort(([, one], [, other]) => other - one)
  if (rows.length === 0)
    return (
      <Empty title="No agents in this time range">
        <p>Requests of agents are counted here by the published purpose of the agent.</p>
      </Empty>
    )
  return (
    <Table
      label="Agents by purpose"
      rows={rows}
      keyOf={([purpose]) => purpose}
      columns={[
        {
          title: 'Purpose',
          cell: ([purpose, requests]) => (
            <>
              {KNOWN.has(purpose) ? (
                <a href={`/dashboard/agents?purpose=${purpose}`}>{purposeOf(purpose)}</a>
              ) : (
                purposeOf(purpose)
              )}
              <div class="bar" aria-hidden="true">
                <span style={{ width: `${(100 * requests) / Math.max(agents, 1)}%` }} />
              </div>
            </>
          ),
        },
        { title: 'Requests', isNumber: true, cell: ([, requests]) => short(requests) },
      ]}
    />
  )
}

/** Confidence of verdicts, by tenths. */
function Confidence({ by }: { readonly by: Statistics['detection']['by_confidence'] }) {
  const tenths = Object.keys(by).sort()
  return (
    <Plot
      title="Confidence of verdicts"
      at={tenths.map((_, place) => place)}
      words={tenths}
      isBars
      lines={[{ label: 'Requests', colour: 'series-1', values: tenths.map((tenth) => by[tenth] ?? 0) }]}
    />
  )
}

function SavedAs({ statistics }: { readonly statistics: Statistics }) {
  const categories = CATEGORIES.map(({ category }) => category)
  const purposes = [...KNOWN, 'unpublished']
  return (
    <Download
      name={`traffic-${statistics.window}`}
      columns={['at', 'requests', 'agents', 'blocked', ...categories, ...purposes]}
      rows={() =>
        statistics.series.map(({ at, requests, agents, blocked, by_category, by_purpose }) => [
          ...[at, requests, agents, blocked],
          ...categories.map((category) => by_category[category] ?? 0),
          ...purposes.map((purpose) => by_purpose[purpose] ?? 0),
        ])
      }
      json={() => statistics}
    />
  )
}

const TOP = 10
const KNOWN: ReadonlySet<string> = new Set(PURPOSES.map(({ purpose }) => purpose))
