import { setTimeout as wait } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Log } from '../../shared/log.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { FingerprintKind, UnnamedFingerprint } from '../../store/catalogue/fingerprints-seen.ts'
import type { RollupRetention } from '../../store/traffic/rollups.ts'
import type { Store } from '../../store/store.ts'
import type { IngestMetrics } from './ingest-metrics.ts'

export interface KeeperSettings {
  /** For how long Sightings are kept as they came, and how many. */
  readonly sightingsMs: number
  readonly sightingsMax: number
  readonly rollups: RollupRetention
  readonly observed: ObservedSettings
}

/** From where on a fingerprint that nobody is known to have is a signature of nobody. */
export interface ObservedSettings {
  readonly addressesMin: number
  readonly requestsMin: number
  readonly max: number
}

/** Counts along, in the transaction that makes these signatures; `stored`: it has committed. */
export interface ObservedCounter {
  count(observed: readonly UnnamedFingerprint[], queries: Queries): Promise<void>
  stored(): void
}

/** What is done with what was seen on a slow beat: old rows go, and fingerprints seen often become signatures. */
export class SightingKeeper {
  readonly #store: Store
  readonly #settings: KeeperSettings
  readonly #counters: readonly ObservedCounter[]
  readonly #metrics: IngestMetrics
  readonly #log: Log
  readonly #isLeading: () => boolean
  readonly #candidates = new Map<string, UnnamedFingerprint>()
  /** They are signatures, or there is no room for them. */
  readonly #settled = new LRUCache<string, true>({ max: SETTLED_MAX, ttl: SETTLED_MS })
  readonly #stop = new AbortController()
  #beats: readonly Promise<void>[] = []

  constructor(
    store: Store,
    settings: KeeperSettings,
    counters: readonly ObservedCounter[],
    metrics: IngestMetrics,
    log: Log,
    isLeading: () => boolean = () => true,
  ) {
    this.#store = store
    this.#settings = settings
    this.#counters = counters
    this.#metrics = metrics
    this.#log = log
    this.#isLeading = isLeading
  }

  start(): void {
    this.#beats = [
      this.#beat(RETENTION_BEAT_MS, () => this.#tidyUp()),
      this.#beat(OBSERVE_BEAT_MS, () => this.observe()),
    ]
  }

  /** Resolves when nothing is under way. */
  async close(): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#beats)
  }

  /** Fingerprints that nobody is known to have, as they are now. */
  noticed(unnamed: readonly UnnamedFingerprint[]): void {
    const { addressesMin, requestsMin } = this.#settings.observed
    for (const each of unnamed) {
      if (each.addresses < addressesMin || each.requests < requestsMin || !OBSERVED.has(each.type)) continue
      const key = `${each.type} ${each.value}`
      if (this.#settled.has(key)) continue
      if (this.#candidates.size < CANDIDATES_MAX || this.#candidates.has(key)) this.#candidates.set(key, each)
    }
  }

  /** Makes signatures of some of those that were noticed. */
  async observe(): Promise<void> {
    // Before what comes with Gatehouse is in the database nobody is known to have anything.
    if (this.#candidates.size === 0 || (await this.#store.agentsSeen.total()) === 0) return
    const some = [...this.#candidates].slice(0, OBSERVED_AT_ONCE)
    const { max } = this.#settings.observed
    const added = await this.#store.transaction(async (queries) => {
      await this.#store.sightings.lock(queries)
      const fingerprints = some.map(([, each]) => each)
      const added = await this.#store.observed.add(fingerprints, max, queries)
      if (added.length > 0) for (const counter of this.#counters) await counter.count(added, queries)
      return added
    })
    if (added.length > 0) for (const counter of this.#counters) counter.stored()
    for (const [key] of some) {
      this.#candidates.delete(key)
      this.#settled.set(key, true)
    }
  }

  /** Removes what is too old or too much, in slices: others write in between. */
  async forget(nowMs: number): Promise<void> {
    const { sightingsMs, sightingsMax, rollups } = this.#settings
    const { sightings, rollups: rolledUp, observed } = this.#store
    await this.#slices(() => sightings.forget(nowMs - sightingsMs, sightingsMax))
    await this.#slices(() => sightings.forgetTaken(nowMs - TAKEN_MS))
    await this.#slices(() => rolledUp.forget(rollups, nowMs))
    await observed.forgetNamed()
  }

  async #tidyUp(): Promise<void> {
    const { retention } = this.#metrics
    try {
      // Of several processes on one database one does it for all.
      if (this.#isLeading()) await this.forget(Date.now())
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
    const { rows } = this.#metrics
    const { sightings, rollups, fingerprintsSeen, agentsSeen, observed } = this.#store
    rows.set('sightings', await sightings.rows())
    rows.set('rollups', await rollups.rows())
    rows.set('fingerprints_seen', await fingerprintsSeen.rows())
    rows.set('agents_seen', await agentsSeen.rows())
    rows.set('observed', await observed.rows())
  }

  /** What fails is tried again at the next beat, and said once. */
  async #beat(beatMs: number, work: () => Promise<void>): Promise<void> {
    const { signal } = this.#stop
    let isFailing = false
    while (!signal.aborted) {
      try {
        await work()
        isFailing = false
      } catch (error) {
        if (!isFailing) this.#log.error('what was seen cannot be tidied up', { error: error as Error })
        isFailing = true
      }
      await wait(beatMs, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }
}

/** JA4S is our own answer: it says as much about this installation as about the client. */
const OBSERVED: ReadonlySet<FingerprintKind> = new Set<FingerprintKind>(['ja4', 'ja4h', 'ja4x'])
const RETENTION_BEAT_MS = 60_000
/** Somebody who waits for a new signature waits about so long. */
const OBSERVE_BEAT_MS = 2_000
const OBSERVED_AT_ONCE = 256
const CANDIDATES_MAX = 10_000
const SETTLED_MAX = 20_000
const SETTLED_MS = 3_600_000
/** For how long a Sighting that comes again is known: a bus may have held it while the management plane was away. */
const TAKEN_MS = 86_400_000
const PAUSE_MS = 20
