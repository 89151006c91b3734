import { setTimeout as wait } from 'node:timers/promises'
import { LateCache } from '../../shared/late-cache.ts'
import type { Log } from '../../shared/log.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { FingerprintKind, UnnamedFingerprint } from '../../store/catalogue/fingerprints-seen.ts'
import type { RollupRetention } from '../../store/traffic/rolled-up.ts'
import type { Store } from '../../store/store.ts'
import type { AfterCommit } from './ingest.ts'
import type { IngestMetrics } from './ingest-metrics.ts'

export interface KeeperSettings {
  /** How long Sightings are kept as received, and how many. */
  readonly sightingsMs: number
  readonly sightingsMax: number
  /** SQLite: the bytes of the file of the database. `null`: no limit. */
  readonly bytesMax: number | null
  readonly rollups: RollupRetention
  readonly observed: ObservedSettings
}

/** The thresholds from which a fingerprint without a known owner becomes a signature without an owner. */
interface ObservedSettings {
  readonly addressesMin: number
  readonly requestsMin: number
  readonly max: number
}

/** Called in the transaction that adds these signatures. */
export type ObservedEvents = (
  observed: readonly UnnamedFingerprint[],
  queries: Queries,
) => Promise<AfterCommit>

interface KeeperContext {
  readonly store: Store
  readonly settings: KeeperSettings
  readonly observed: ObservedEvents
  readonly metrics: IngestMetrics
  readonly log: Log
  /** If several processes share a database, only the leader deletes rows. */
  isLeading(): boolean
}

/**
 * Periodic work on Sightings: deletes old rows, and turns fingerprints that are seen often into signatures.
 */
export class SightingKeeper {
  readonly #context: KeeperContext
  readonly #candidates = new Map<string, UnnamedFingerprint>()
  /** They are signatures already, or there is no room for them. */
  readonly #settled = new LateCache<true>({ max: SETTLED_MAX, ttl: SETTLED_MS })
  readonly #stop = new AbortController()
  #beats: readonly Promise<void>[] = []

  constructor(context: KeeperContext) {
    this.#context = context
  }

  start(): void {
    this.#beats = [
      this.#beat(RETENTION_BEAT_MS, () => this.#tidyUp()),
      this.#beat(OBSERVE_BEAT_MS, () => this.observe()),
      this.#beat(FIT_BEAT_MS, () => this.fit()),
    ]
  }

  /** Resolves when no work is in progress. */
  async close(): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#beats)
  }

  /** Notes fingerprints without a known owner, with their current counts. */
  noticed(unnamed: readonly UnnamedFingerprint[]): void {
    const { addressesMin, requestsMin } = this.#context.settings.observed
    for (const each of unnamed) {
      if (each.addresses < addressesMin || each.requests < requestsMin || !OBSERVED.has(each.type)) continue
      const key = `${each.type} ${each.value}`
      if (this.#settled.has(key)) continue
      if (this.#candidates.size < CANDIDATES_MAX || this.#candidates.has(key)) this.#candidates.set(key, each)
    }
  }

  /** Turns some of the noted fingerprints into signatures. */
  async observe(): Promise<void> {
    // Before the built-in signatures are in the database, no fingerprint has a known owner.
    const { store, settings, observed } = this.#context
    if (this.#candidates.size === 0 || (await store.agentsSeen.total()) === 0) return
    const some = [...this.#candidates].slice(0, OBSERVED_AT_ONCE)
    const afterCommit = await store.transaction(async (queries) => {
      await store.sightings.lock(queries)
      const fingerprints = some.map(([, each]) => each)
      const added = await store.observed.add(fingerprints, settings.observed.max, queries)
      return added.length === 0 ? null : observed(added, queries)
    })
    afterCommit?.()
    for (const [key] of some) {
      this.#candidates.delete(key)
      this.#settled.set(key, true)
    }
  }

  /** Deletes rows that are too old or too many, in slices so that others can write in between. */
  async forget(nowMs: number): Promise<void> {
    const { sightingsMs, sightingsMax, rollups } = this.#context.settings
    const { sightings, rollups: rolledUp, appRollups, observed } = this.#context.store
    await sightings.prepare(nowMs, sightingsMs)
    await this.#slices(() => sightings.forget(nowMs - sightingsMs, nowMs, sightingsMax))
    await this.#slices(() => sightings.forgetProfiles(nowMs - sightingsMs))
    const unused = sightings.forgetUnusedProfiles(sightingsMax)
    await this.#slices(async () => !(await unused.next()).done)
    await this.#slices(() => sightings.forgetTaken(nowMs - TAKEN_MS))
    await this.#slices(() => rolledUp.forget(rollups, nowMs))
    await this.#slices(() => appRollups.forget(rollups, nowMs))
    await observed.forgetNamed()
  }

  /** SQLite: keeps the file of the database within its limit, and gives back what it does not need. */
  async fit(): Promise<void> {
    const { store, settings } = this.#context
    const { bytesMax } = settings
    const { space, sightings } = store
    if (space === null) return
    if (bytesMax !== null) {
      const oldest = sightings.forgetOldest(async () => (await space.used()) > bytesMax * USED_MAX)
      await this.#slices(async () => !(await oldest.next()).done)
    }
    await this.#slices(() => space.shrinkSome())
  }

  async #tidyUp(): Promise<void> {
    const { retention } = this.#context.metrics
    try {
      if (this.#context.isLeading()) await this.forget(Date.now())
      await this.#count()
      retention.done++
    } catch (error) {
      retention.failed++
      throw error
    }
  }

  async #slices(forgetSome: () => Promise<boolean>): Promise<void> {
    while (!this.#stop.signal.aborted && (await forgetSome())) await wait(PAUSE_MS)
  }

  async #count(): Promise<void> {
    const { metrics, store } = this.#context
    const { rows } = metrics
    const { sightings, rollups, appRollups, fingerprintsSeen, agentsSeen, observed } = store
    const waiting = await sightings.waiting()
    if (waiting !== null) rows.set('traffic_outbox', waiting)
    rows.set('sightings', await sightings.rows())
    rows.set('sighting_profiles', await sightings.profiles())
    rows.set('rollups', await rollups.rows())
    rows.set('app_rollups', await appRollups.rows())
    rows.set('fingerprints_seen', await fingerprintsSeen.rows())
    rows.set('agents_seen', await agentsSeen.rows())
    rows.set('observed', await observed.rows())
  }

  /** A failure is logged once and tried again at the next beat. */
  async #beat(beatMs: number, work: () => Promise<void>): Promise<void> {
    const { signal } = this.#stop
    let isFailing = false
    while (!signal.aborted) {
      try {
        await work()
        isFailing = false
      } catch (error) {
        if (!isFailing)
          this.#context.log.error('what was seen cannot be tidied up', { error: error as Error })
        isFailing = true
      }
      await wait(beatMs, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }
}

/** A JA4S is our own answer: it says as much about this installation as about the client. */
const OBSERVED: ReadonlySet<FingerprintKind> = new Set<FingerprintKind>(['ja4', 'ja4h', 'ja4x'])
const RETENTION_BEAT_MS = 60_000
/** Of the limit. The rest is for what comes until the next beat. */
const USED_MAX = 0.9
const FIT_BEAT_MS = 5_000
/** About the time that it takes until a new signature appears. */
const OBSERVE_BEAT_MS = 2_000
const OBSERVED_AT_ONCE = 256
const CANDIDATES_MAX = 10_000
const SETTLED_MAX = 20_000
const SETTLED_MS = 3_600_000
/** How long a repeated Sighting is recognized. A bus may have kept it while the management plane was down. */
const TAKEN_MS = 86_400_000
const PAUSE_MS = 20
