import { type Seconds, sumOf, type TrafficSample } from '../manage/intake/traffic.ts'
import { type Column, renderTable } from '../terminal/table.ts'

/** The data for one screen. */
export interface TopState {
  /** URL of the gateway. */
  readonly url: string
  readonly seconds: Seconds
  /** Agents of the last hour, those with the most requests first. */
  readonly hour: readonly AgentOfHour[]
  /** Why no events arrive; `null`: all is well. */
  readonly trouble: string | null
}

interface AgentOfHour {
  readonly agent_id: string
  readonly agent_name: string
  readonly agent_category: string | null
  readonly agent_purpose: readonly string[]
  readonly requests: number
  readonly blocked: number
}

/** The lines of a screen of this size. */
export function topLines(state: TopState, columns: number, rows: number): readonly string[] {
  const minute = sumOf(state.seconds, MINUTE)
  const head = headOf(state, minute)
  const agents = agentRows(state, minute).slice(0, Math.max(1, rows - head.length - 2))
  const table =
    agents.length === 0
      ? ['No agent with a name was seen in this hour.']
      : renderTable(COLUMNS, agents, columns)
  return [...head, '', ...table].map((line) => line.slice(0, columns))
}

function headOf({ url, seconds, trouble }: TopState, minute: TrafficSample): readonly string[] {
  const rate = sumOf(seconds, NOW).requests / heardOf(seconds)
  const share = (verdict: string) =>
    `${verdict} ${minute.requests === 0 ? 0 : Math.round((100 * (minute.by_verdict[verdict] ?? 0)) / minute.requests)} %`
  const done = (action: string) => `${action} ${minute.by_action[action] ?? 0}`
  return [
    `${url}: ${rate.toFixed(1)} requests a second, ${minute.requests} in the last minute`,
    `${['agent', 'automation', 'human', 'unknown'].map(share).join(', ')}; ${['tag', 'block'].map(done).join(', ')}`,
    ...(trouble === null ? [] : [`Nothing is heard: ${trouble}`]),
  ]
}

function agentRows({ seconds, hour }: TopState, minute: TrafficSample): readonly (readonly string[])[] {
  const now = new Map(sumOf(seconds, NOW).agents.map(({ id, requests }) => [id, requests]))
  const inMinute = new Map(minute.agents.map(({ id, requests }) => [id, requests]))
  const known = new Map(hour.map((agent) => [agent.agent_id, agent]))
  return [...new Set([...inMinute.keys(), ...known.keys()])]
    .map((id) => ({ id, minute: inMinute.get(id) ?? 0, known: known.get(id) ?? null }))
    .sort(
      (one, other) =>
        other.minute - one.minute ||
        (other.known?.requests ?? 0) - (one.known?.requests ?? 0) ||
        (one.id < other.id ? -1 : 1),
    )
    .map(({ id, minute, known }) => [
      known?.agent_name ?? id,
      known?.agent_category ?? '',
      known?.agent_purpose.join(', ') ?? '',
      ((now.get(id) ?? 0) / heardOf(seconds)).toFixed(1),
      String(minute),
      String(Math.max(known?.requests ?? 0, minute)),
      String(known?.blocked ?? 0),
    ])
}

/** How many of the newest seconds have data. */
function heardOf({ traffic }: Seconds): number {
  return Math.max(1, traffic.slice(-NOW).filter((second) => second !== null).length)
}

const COLUMNS: readonly Column[] = [
  { title: 'AGENT', flexible: true },
  { title: 'CATEGORY' },
  { title: 'PURPOSE' },
  { title: 'A SECOND', align: 'right' },
  { title: 'MINUTE', align: 'right' },
  { title: 'HOUR', align: 'right' },
  { title: 'BLOCKED', align: 'right' },
]
/** Rates are averages over this many seconds: a single second would fluctuate. */
const NOW = 5
const MINUTE = 60
