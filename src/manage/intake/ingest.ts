import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import type { Sighting } from '../../plane/sighting.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { VersionOf } from '../../store/catalogue/agents-seen.ts'
import { FingerprintTally, type UnnamedFingerprint } from '../../store/catalogue/fingerprints-seen.ts'
import { OTHER, RollupTally } from '../../store/traffic/rollup-tally.ts'
import type { RollupRetention } from '../../store/traffic/rollups.ts'
import type { Store } from '../../store/store.ts'
import type { IngestMetrics } from './ingest-metrics.ts'
import { networkHash, takeIn } from './sighting-intake.ts'

/** The rest of the work of a transaction, for the time after its commit. */
export type AfterCommit = () => void

/** Counts each Sighting once, in the transaction that stores it. Must wait for nothing except queries. */
type SightingCounter = (batch: readonly Sighting[], queries: Queries) => Promise<void>

/**
 * Adds the events that Sightings cause, in the transaction that stores them. `firsts` are those that are the
 * first of their agent on this installation.
 */
export type SightingEvents = (
  batch: readonly Sighting[],
  queries: Queries,
  firsts: readonly Sighting[],
) => Promise<AfterCommit>

export interface IngestOptions {
  readonly retention: RollupRetention
  readonly counters: readonly SightingCounter[]
  /** Runs after the counters, because events have to be the last change of a transaction. `null`: no events. */
  readonly events: SightingEvents | null
  /** Called with the stored Sightings and with those of their fingerprints that have no known owner. */
  readonly stored: (batch: readonly Sighting[], unnamed: readonly UnnamedFingerprint[]) => void
  /** The version that the client claims for its agent. */
  readonly versionOf: VersionOf
  nowMs(): number
}

/**
 * Takes batches of Sightings and stores each Sighting exactly once, however often and in whatever order it
 * arrives. Batches that arrive during a transaction share the next one, so that they wait for the disk only
 * once.
 */
export class Ingest {
  readonly #store: Store
  readonly #options: IngestOptions
  readonly #metrics: IngestMetrics
  readonly #log: Log
  readonly #waiting: WaitingBatch[] = []
  #waitingSize = 0
  #running: Promise<void> | null = null
  /** Database errors are logged once, until a write succeeds. */
  #isFailing = false
  #hasLeftOut = false
  #isClosed = false

  constructor(store: Store, options: IngestOptions, metrics: IngestMetrics, log: Log) {
    this.#store = store
    this.#options = options
    this.#metrics = metrics
    this.#log = log
  }

  /**
   * Resolves when the whole batch is committed. Rejects if the database cannot take it now: the sender has to
   * send it again. Items that are not Sightings are counted and dropped, so that they are not sent forever.
   */
  async take(batch: unknown): Promise<void> {
    if (!Array.isArray(batch)) return this.#refuse('the batch is not a list of Sightings')
    const pieces: Promise<void>[] = []
    for (let at = 0; at < batch.length; at += GROUP_MAX)
      pieces.push(this.#add(batch.slice(at, at + GROUP_MAX)))
    // Waits for all pieces, so that none of them is in flight when the batch is sent again.
    const failed = (await Promise.allSettled(pieces)).find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
  }

  /** Rejects new batches; resolves when all accepted ones are stored. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#running
  }

  #add(batch: readonly unknown[]): Promise<void> {
    if (this.#isClosed) return Promise.reject(new Fault('STORE_UNAVAILABLE', 'the database is closed'))
    if (this.#waitingSize + batch.length > WAITING_MAX)
      return Promise.reject(new Fault('STORE_LOCKED', 'more comes than the database can take'))
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#waiting.push({ batch, resolve, reject })
    this.#waitingSize += batch.length
    this.#running ??= this.#run()
    return promise
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Yields to other work of this process. More batches join the group in the meantime.
      await new Promise(setImmediate)
      const group = this.#group()
      try {
        const { sightings, refusals } = this.#read(group)
        await this.#storeAll(sightings)
        this.#isFailing = false
        for (const why of refusals) this.#refuse(why)
        for (const { resolve } of group) resolve()
      } catch (error) {
        this.#failed(error as Error)
        for (const { reject } of group) reject(error)
      }
    }
    this.#running = null
  }

  /** The next waiting batches, in order, up to the size of one transaction. */
  #group(): readonly WaitingBatch[] {
    let size = 0
    let count = 0
    for (const { batch } of this.#waiting) {
      if (count > 0 && size + batch.length > GROUP_MAX) break
      size += batch.length
      count++
    }
    this.#waitingSize -= size
    return this.#waiting.splice(0, count)
  }

  #read(group: readonly WaitingBatch[]) {
    const nowMs = this.#options.nowMs()
    const sightings: Sighting[] = []
    const refusals: string[] = []
    for (const { batch } of group) {
      for (const value of batch) {
        const sighting = takeIn(value, nowMs)
        if (typeof sighting === 'string') refusals.push(sighting)
        else sightings.push(sighting)
      }
    }
    return { sightings, refusals }
  }

  /** If a single Sighting cannot be stored at all, bisects the batch to store all others. */
  async #storeAll(sightings: readonly Sighting[]): Promise<void> {
    if (sightings.length === 0) return
    try {
      await this.#commit(sightings)
    } catch (error) {
      if (!isOfSighting(error)) throw error
      if (sightings.length === 1) return this.#leaveOut(error as Error)
      const half = sightings.length >>> 1
      await this.#storeAll(sightings.slice(0, half))
      await this.#storeAll(sightings.slice(half))
    }
  }

  async #commit(sightings: readonly Sighting[]): Promise<void> {
    const startedMs = performance.now()
    const store = this.#store
    const { retention, counters, events, versionOf } = this.#options
    const nowMs = this.#options.nowMs()
    const { fresh, duplicates, crowded, unnamed, afterCommit } = await store.transaction(async (queries) => {
      await store.sightings.lock(queries)
      const sorted = await store.sightings.sort(sightings, nowMs, queries)
      if (sorted.fresh.length === 0) return { ...sorted, unnamed: [], afterCommit: undefined }
      const { kept, firsts } = await store.agentsSeen.add(sorted.fresh, queries, versionOf)
      const [rollups, fingerprints] = tallied(sorted.fresh, kept)
      await store.rollups.add(rollups, retention, nowMs, queries)
      const unnamed = await store.fingerprintsSeen.add(fingerprints, queries)
      await store.sightings.add(sorted.fresh, queries)
      for (const counter of counters) await counter(sorted.fresh, queries)
      return { ...sorted, unnamed, afterCommit: await events?.(sorted.fresh, queries, firsts) }
    })
    const { counts, durations } = this.#metrics
    counts.stored += fresh.length
    counts.duplicates += duplicates
    for (let each = 0; each < crowded; each++) this.#refuse('id is not what a proxy makes')
    durations.observe(performance.now() - startedMs)
    afterCommit?.()
    this.#options.stored(fresh, unnamed)
  }

  /** A sender of invalid items usually sends many, so only the first one is logged. */
  #refuse(why: string): void {
    if (this.#metrics.counts.refused++ === 0) this.#log.warn('a Sighting was refused', { why })
  }

  #leaveOut(error: Error): void {
    this.#metrics.counts.refused++
    if (this.#hasLeftOut) return
    this.#hasLeftOut = true
    this.#log.error('a Sighting cannot be stored, and is left out', { error })
  }

  #failed(error: Error): void {
    this.#metrics.counts.failures++
    if (this.#isFailing) return
    this.#isFailing = true
    this.#log.error('Sightings cannot be stored; the proxies keep them', { error })
  }
}

interface WaitingBatch {
  readonly batch: readonly unknown[]
  resolve(): void
  reject(error: unknown): void
}

/** `kept`: agents that are counted under their own names. */
function tallied(
  sightings: readonly Sighting[],
  kept: ReadonlySet<string>,
): readonly [RollupTally, FingerprintTally] {
  const rollups = new RollupTally()
  const fingerprints = new FingerprintTally()
  for (const sighting of sightings) {
    const { agent } = sighting
    rollups.add(sighting, agent === null || kept.has(agent) ? agent : OTHER)
    fingerprints.add(sighting, networkHash(sighting.address))
  }
  return [rollups, fingerprints]
}

/** Whether the cause is the data or our code, and not the database. Such an error would recur. */
function isOfSighting(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown }
  return typeof code !== 'string' || OF_SIGHTING.test(code)
}

/** PostgreSQL's classes 22 (data) and 23 (constraints), the SQLite equivalents, and assertions. */
const OF_SIGHTING = /^(?:2[23]\w{3}|SQLITE_(?:CONSTRAINT|TOOBIG|MISMATCH|RANGE)\w*|ERR_\w+)$/
/** About 60 ms of one core, which is short enough for live views. */
const GROUP_MAX = 2_048
/** About two seconds of work and 40 MB. The senders had better keep anything beyond that. */
const WAITING_MAX = 65_536
