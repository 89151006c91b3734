import type { Metrics } from '../shared/metrics.ts'
import type { Log } from '../shared/log.ts'
import type { FleetProxy } from '../plane/fleet-proxy.ts'
import type { WorkerSettings } from '../proxy/worker/worker-settings.ts'
import { NO_WORKER, UNREADY_CODES, type UnreadyReason } from '../plane/readiness.ts'

/**
 * Debounces reasons, so that readiness does not flap. A reason is reported after it has lasted `holdMs`, and
 * removed after it has been gone as long. Reasons that exist at the start are reported at once, and so is that no worker
 * runs: connections are refused then.
 */
export class SteadyReasons {
  readonly #look: () => readonly UnreadyReason[]
  readonly #holdMs: number
  readonly #nowMs: () => number
  /** By code and detail; at most KNOWN_MAX. */
  readonly #known = new Map<string, HeldReason>()
  #beat: NodeJS.Timeout | null = null

  constructor(
    look: () => readonly UnreadyReason[],
    holdMs: number,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#look = look
    this.#holdMs = holdMs
    this.#nowMs = nowMs
  }

  start(): void {
    const nowMs = this.#nowMs()
    for (const reason of this.#look().slice(0, KNOWN_MAX))
      this.#known.set(keyOf(reason), { reason, isThere: true, isShown: true, sinceMs: nowMs })
    this.#beat = setInterval(() => this.now(), Math.min(BEAT_MS, this.#holdMs)).unref()
  }

  close(): void {
    if (this.#beat !== null) clearInterval(this.#beat)
  }

  now(): readonly UnreadyReason[] {
    const nowMs = this.#nowMs()
    const found = new Map(this.#look().map((reason) => [keyOf(reason), reason]))
    for (const [key, reason] of found)
      if (!this.#known.has(key) && this.#known.size < KNOWN_MAX)
        this.#known.set(key, { reason, isThere: true, isShown: false, sinceMs: nowMs })
    for (const [key, known] of this.#known) {
      const isThere = found.has(key)
      if (isThere !== known.isThere) {
        known.isThere = isThere
        known.sinceMs = nowMs
      }
      const holdMs = known.reason.code === NO_WORKER.code ? 0 : this.#holdMs
      if (nowMs - known.sinceMs >= holdMs) known.isShown = isThere
      if (!isThere && !known.isShown) this.#known.delete(key)
    }
    return [...this.#known.values()].filter(({ isShown }) => isShown).map(({ reason }) => reason)
  }
}

interface HeldReason {
  readonly reason: UnreadyReason
  isThere: boolean
  isShown: boolean
  /** When the reason last appeared or disappeared. */
  sinceMs: number
}

function keyOf({ code, detail }: UnreadyReason): string {
  return `${code} ${detail}`
}

/** At most one interval of the health checks, so that a single failed check is not reported. */
export function holdOf(upstreams: WorkerSettings['upstreams']): number {
  return Math.min(HOLD_MS, ...upstreams.map(({ health }) => health?.intervalMs ?? HOLD_MS))
}

/**
 * Waits for the first Snapshot of the fleet. The client ports stay closed until then: load balancers
 * send a refused connection elsewhere, and health checks that only connect fail too. No request can be
 * served without the fleet's policy.
 */
export async function untilFirstSnapshot(fleet: FleetProxy, log: Log): Promise<void> {
  const reason = fleet.waitsFor
  if (reason === null) return
  log.warn('the ports for clients stay closed until there is a Snapshot', { reason: reason.detail })
  await fleet.hasFirst
  log.info('the first Snapshot of the fleet has arrived')
}

/** The same reasons as `/health/ready`. */
export function addReadinessMetrics(metrics: Metrics, unready: () => readonly UnreadyReason[]): void {
  const help = '1 for each reason why `/health/ready` answers 503.'
  metrics.gauge('unready', help, 'first', () => {
    const codes = new Set(unready().map(({ code }) => code))
    return UNREADY_CODES.map((reason) => ({ labels: { reason }, value: Number(codes.has(reason)) }))
  })
}

export const CATALOGUE_FILLING: UnreadyReason = {
  code: 'catalogue',
  detail: 'the catalogue in the database is being filled: the API does not list every agent yet',
}
export const DATABASE_UNREACHABLE: UnreadyReason = {
  code: 'database',
  detail: 'the database is unreachable: check store.url and PostgreSQL; the log has the error',
}
export const NO_SNAPSHOT: UnreadyReason = {
  code: 'first_snapshot',
  detail: 'the API has no Snapshot to judge by yet',
}
const BEAT_MS = 500
const HOLD_MS = 10_000
/** More than the reasons of a gateway with hundreds of upstreams. */
const KNOWN_MAX = 1_000
