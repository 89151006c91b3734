import { Fault } from '../../shared/fault.ts'
import type { Metrics } from '../../shared/metrics.ts'
import type { Heartbeat } from '../../plane/heartbeat.ts'
import { type PastRun, ProxyHistory } from './fleet-history.ts'
import { NO_POSITION, type Part, type PartOf } from '../../store/engine/page.ts'

/** The state of a proxy, according to its last heartbeat. */
type ProxyState = 'serving' | 'unready' | 'starting' | 'stale'
export const PROXY_STATES: readonly ProxyState[] = ['serving', 'unready', 'starting', 'stale']

export interface SeenProxy {
  readonly heartbeat: Heartbeat
  readonly heardAtMs: number
  readonly state: ProxyState
  /** Whether all its workers use the newest Snapshot. */
  readonly isCurrent: boolean
}

interface FleetFilters {
  readonly state: ProxyState | null
  readonly version: string | null
  readonly isCurrent: boolean | null
}

export interface FleetSummary {
  readonly total: number
  readonly byState: Readonly<Record<ProxyState, number>>
  readonly byVersion: Readonly<Record<string, number>>
  readonly current: number
  /** When the oldest Snapshot in use was made; `null`: no proxy has one. */
  readonly oldestMadeAtMs: number | null
}

/** The proxies, according to their heartbeats. Every manager receives all heartbeats. */
export class FleetView {
  readonly #nowMs: () => number
  readonly #proxies = new Map<string, Heard>()
  readonly #histories = new Map<string, ProxyHistory>()
  /** The number of the newest Snapshot. */
  #newest = 0

  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs
  }

  hear(heartbeat: Heartbeat): void {
    const { id } = heartbeat
    this.#note(heartbeat)
    if (heartbeat.isLast) this.#proxies.delete(id)
    else if (this.#proxies.size < PROXIES_MAX || this.#proxies.has(id))
      this.#proxies.set(id, { heartbeat, heardAtMs: this.#nowMs() })
  }

  published(number: number): void {
    this.#newest = Math.max(this.#newest, number)
  }

  /** How a proxy was in the last 24 hours, as far as this process has heard it, oldest first. */
  historyOf(id: string): readonly PastRun[] {
    return this.#histories.get(id)?.runs(this.#nowMs()) ?? []
  }

  /** Sorted by host, then by id. */
  part<Asked extends Part>(filters: FleetFilters, part: Asked): PartOf<SeenProxy, Asked> {
    const { state, version, isCurrent } = filters
    const found = this.#all()
      .filter(
        (proxy) =>
          (state === null || proxy.state === state) &&
          (version === null || proxy.heartbeat.version === version) &&
          (isCurrent === null || proxy.isCurrent === isCurrent),
      )
      .sort(inOrder)
    return partOf(found, part) as PartOf<SeenProxy, Asked>
  }

  summary(): FleetSummary {
    const byState = { serving: 0, unready: 0, starting: 0, stale: 0 }
    const byVersion = new Map<string, number>()
    let current = 0
    let oldestMadeAtMs: number | null = null
    for (const { heartbeat, state, isCurrent } of this.#all()) {
      const { version, snapshot } = heartbeat
      byState[state]++
      if (byVersion.size < VERSIONS_MAX || byVersion.has(version))
        byVersion.set(version, (byVersion.get(version) ?? 0) + 1)
      if (isCurrent) current++
      if (snapshot !== null) oldestMadeAtMs = Math.min(oldestMadeAtMs ?? snapshot.madeAtMs, snapshot.madeAtMs)
    }
    return {
      total: this.#proxies.size,
      byState,
      byVersion: Object.fromEntries(byVersion),
      current,
      oldestMadeAtMs,
    }
  }

  addMetrics(metrics: Metrics): void {
    metrics.gauge('fleet_proxies', 'Proxies that reported in the last hour, by state.', 'first', () =>
      Object.entries(this.summary().byState).map(([state, value]) => ({ labels: { state }, value })),
    )
    metrics.gauge('fleet_proxies_behind', 'Proxies that do not use the newest Snapshot.', 'first', () => {
      const { total, current } = this.summary()
      return [{ labels: {}, value: total - current }]
    })
    metrics.gauge(
      'fleet_proxy_versions',
      'Proxies that reported in the last hour, by version.',
      'first',
      () =>
        Object.entries(this.summary().byVersion).map(([version, value]) => ({ labels: { version }, value })),
    )
    metrics.gauge(
      'fleet_oldest_snapshot_timestamp_seconds',
      'When the oldest Snapshot still in use by a proxy was made.',
      'first',
      () => {
        const { oldestMadeAtMs } = this.summary()
        return oldestMadeAtMs === null ? [] : [{ labels: {}, value: oldestMadeAtMs / 1000 }]
      },
    )
  }

  /** A proxy that is started again goes on with its history. */
  #note(heartbeat: Heartbeat): void {
    const { id, isLast } = heartbeat
    const nowMs = this.#nowMs()
    let history = this.#histories.get(id)
    if (isLast) return history?.stop()
    if (history === undefined) {
      if (this.#histories.size === HISTORIES_MAX)
        for (const [old, each] of this.#histories) if (each.isOver(nowMs)) this.#histories.delete(old)
      if (this.#histories.size === HISTORIES_MAX) return
      history = new ProxyHistory(nowMs)
      this.#histories.set(id, history)
    }
    history.hear(
      {
        heartbeat,
        state: reportedState(heartbeat),
        isCurrent: isCurrent(heartbeat, this.#newest),
        silentMsMax: silentMsMax(heartbeat),
      },
      nowMs,
    )
  }

  #all(): SeenProxy[] {
    const nowMs = this.#nowMs()
    const all: SeenProxy[] = []
    for (const [id, { heartbeat, heardAtMs }] of this.#proxies) {
      if (nowMs - heardAtMs > FORGOTTEN_MS) this.#proxies.delete(id)
      else
        all.push({
          heartbeat,
          heardAtMs,
          state: stateOf(heartbeat, nowMs - heardAtMs),
          isCurrent: isCurrent(heartbeat, this.#newest),
        })
    }
    return all
  }
}

interface Heard {
  readonly heartbeat: Heartbeat
  readonly heardAtMs: number
}

function stateOf(heartbeat: Heartbeat, silentMs: number): ProxyState {
  return silentMs > silentMsMax(heartbeat) ? 'stale' : reportedState(heartbeat)
}

function silentMsMax({ everyMs }: Heartbeat): number {
  return Math.max(everyMs * BEATS_MISSED, STALE_MS_MIN)
}

function reportedState({ workers }: Heartbeat): Exclude<ProxyState, 'stale'> {
  if (!workers.some(({ state }) => state === 'serving')) return 'starting'
  return workers.every(({ state, unready }) => state === 'serving' && unready.length === 0)
    ? 'serving'
    : 'unready'
}

function isCurrent({ snapshot, workers }: Heartbeat, newest: number): boolean {
  if (snapshot === null || snapshot.number < newest) return false
  return workers.every((worker) => worker.snapshot === null || worker.snapshot >= newest)
}

function inOrder(one: SeenProxy, other: SeenProxy): number {
  return placeOf(one) < placeOf(other) ? -1 : 1
}

/** With a cursor: the items after its position. */
function partOf(found: readonly SeenProxy[], part: Part): PartOf<SeenProxy, Part> {
  if ('page' in part) {
    const from = (part.page - 1) * part.limit
    return { items: found.slice(from, from + part.limit), total: found.length }
  }
  const [after = ''] = part.after ?? []
  if (typeof after !== 'string' || (part.after?.length ?? 1) !== 1)
    throw new Fault(NO_POSITION, 'this is not a position in the list')
  const rest = found.filter((proxy) => placeOf(proxy) > after)
  const items = rest.slice(0, part.limit)
  return { items, next: rest.length > part.limit ? [placeOf(items.at(-1)!)] : null }
}

function placeOf({ heartbeat }: SeenProxy): string {
  return `${heartbeat.host}\n${heartbeat.id}`
}

/** Ten times the largest fleet that was tested. */
const PROXIES_MAX = 100_000
/** Less than a kilobyte each. */
const HISTORIES_MAX = 20_000
const VERSIONS_MAX = 20
const BEATS_MISSED = 3
const STALE_MS_MIN = 3_000
/** As long as NATS keeps the last heartbeats. */
const FORGOTTEN_MS = 3_600_000
