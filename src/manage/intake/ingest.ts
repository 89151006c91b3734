import { fairShare, keptShares } from '../../apps/fair-share.ts'
import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import type { Pressure } from '../../plane/bus.ts'
import type { Sighting } from '../../plane/sighting.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { VersionOf } from '../../store/catalogue/agents-seen.ts'
import { FingerprintTally, type UnnamedFingerprint } from '../../store/catalogue/fingerprints-seen.ts'
import { type CountedRequests, readRequestCounts } from '../../plane/counts/request-counts.ts'
import { RollupTally } from '../../plane/counts/rollup-tally.ts'
import { idPlace } from '../../store/catalogue/place-ranges.ts'
import type { RollupRetention } from '../../store/traffic/rolled-up.ts'
import type { Store } from '../../store/store.ts'
import type { IngestMetrics } from './ingest-metrics.ts'
import { clientHash, takeIn } from './sighting-intake.ts'

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
) => Promise<EventsAdded>

export interface EventsAdded {
  readonly count: number
  readonly afterCommit: AfterCommit
}

export interface IngestOptions {
  readonly retention: RollupRetention
  readonly counters: readonly SightingCounter[]
  /** Runs after the counters, because events have to be the last change of a transaction. `null`: no events. */
  readonly events: SightingEvents | null
  /** PostgreSQL: whether the commit of Sightings waits for the disk. With events, it always does. */
  readonly waitsForDisk: boolean
  /**
   * Called with the stored Sightings, with those of their fingerprints that have no known owner, and with the counts of
   * all requests, including those without a Sighting.
   */
  readonly stored: (
    batch: readonly Sighting[],
    unnamed: readonly UnnamedFingerprint[],
    tally: RollupTally,
  ) => void
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
  #pressure: Pressure = 'none'
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
   * Under high pressure all are counted and a fair share of each app is stored. Under extreme pressure only a fair
   * share is counted, so that an app with few requests loses none. `counts` of proxies are always added.
   */
  async take(batch: unknown, pressure: Pressure = 'none', counts: readonly unknown[] = []): Promise<void> {
    this.#setPressure(pressure)
    if (!Array.isArray(batch)) return this.#refuse('the batch is not a list of Sightings')
    // In the transaction of their Sightings, if these fit into one.
    const pieces = [this.#add(batch.slice(0, GROUP_MAX), counts)]
    for (let at = GROUP_MAX; at < batch.length; at += GROUP_MAX)
      pieces.push(this.#add(batch.slice(at, at + GROUP_MAX), []))
    // Waits for all pieces, so that none of them is in flight when the batch is sent again.
    const failed = (await Promise.allSettled(pieces)).find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
  }

  /** Rejects new batches; resolves when all accepted ones are stored. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#running
  }

  #add(batch: readonly unknown[], counts: readonly unknown[]): Promise<void> {
    if (this.#isClosed) return Promise.reject(new Fault('STORE_UNAVAILABLE', 'the database is closed'))
    const size = batch.length + counts.length
    if (this.#waitingSize + size > WAITING_MAX)
      return Promise.reject(new Fault('STORE_LOCKED', 'more comes than the database can take'))
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#waiting.push({ batch, counts, size, resolve, reject })
    this.#waitingSize += size
    this.#running ??= this.#run()
    return promise
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Yields to other work of this process. More batches join the group in the meantime.
      await new Promise(setImmediate)
      const group = this.#group()
      try {
        const all = group.flatMap(({ batch }) => batch)
        const counted = this.#pressure === 'extreme' ? fairShare(all, GROUP_MAX, appNamed) : all
        const wanted = counted === all ? null : new Set(counted)
        const { sightings, counts, refusals } = this.#read(group, wanted)
        await this.#storeAll(sightings, counts)
        this.#isFailing = false
        this.#noteLeftOut(all, counted)
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
    const most = this.#pressure === 'none' ? GROUP_MAX : HURRIED_MAX
    for (const waiting of this.#waiting) {
      if (count > 0 && size + waiting.size > most) break
      size += waiting.size
      count++
    }
    this.#waitingSize -= size
    return this.#waiting.splice(0, count)
  }

  #read(group: readonly WaitingBatch[], wanted: ReadonlySet<unknown> | null) {
    const nowMs = this.#options.nowMs()
    const sightings: Received[] = []
    const counts: CountedRequests[] = []
    const refusals: string[] = []
    for (const waiting of group) {
      const ofBatch: CountedRequests[] = []
      for (const value of waiting.counts) {
        const counted = readRequestCounts(value, nowMs)
        if (typeof counted === 'string') refusals.push(counted)
        else if (idPlace(counted.id) === null) refusals.push('id is not what a proxy makes')
        else ofBatch.push(counted)
      }
      counts.push(...ofBatch)
      const [first = null, ...others] = ofBatch
      // Requests without a Sighting leave gaps in the ids of the others, each of which would be remembered.
      const hasGaps = first !== null && others.length === 0 && first.tally.requests > waiting.batch.length
      for (const value of waiting.batch) {
        if (wanted?.has(value) === false) continue
        const sighting = takeIn(value, nowMs)
        if (typeof sighting === 'string') refusals.push(sighting)
        else sightings.push({ sighting, by: hasGaps && sighting.sampled !== null ? first : null })
      }
    }
    return { sightings, counts, refusals }
  }

  /** If a single Sighting cannot be stored at all, bisects the batch to store all others. */
  async #storeAll(sightings: readonly Received[], counts: readonly CountedRequests[]): Promise<void> {
    const size = sightings.length + counts.length
    if (size === 0) return
    try {
      await this.#commit(sightings, counts)
    } catch (error) {
      if (!isOfSighting(error)) throw error
      if (size === 1) return this.#leaveOut(error as Error)
      const half = Math.ceil(sightings.length / 2)
      const halfOfCounts = counts.length >>> 1
      await this.#storeAll(sightings.slice(0, half), counts.slice(0, halfOfCounts))
      await this.#storeAll(sightings.slice(half), counts.slice(halfOfCounts))
    }
  }

  async #commit(received: readonly Received[], counts: readonly CountedRequests[]): Promise<void> {
    const startedMs = performance.now()
    const store = this.#store
    const { retention, counters, events, waitsForDisk, versionOf } = this.#options
    const nowMs = this.#options.nowMs()
    const { fresh, duplicates, crowded, kept, unnamed, tally, afterCommit } = await store.transaction(
      async (queries) => {
        await store.sightings.lock(queries)
        const { fresh, ofCounts, ...sorted } = await this.#sort(received, counts, queries)
        const tally = new RollupTally()
        const found = { ...sorted, fresh, tally }
        if (fresh.length + ofCounts.length === 0)
          return { ...found, kept: [], unnamed: [], afterCommit: undefined }
        for (const each of ofCounts) tally.addAll(each.tally)
        for (const each of fresh) if (each.sampled === null) tally.add(each)
        const { named, firsts } = await store.agentsSeen.add(fresh, tally, queries, versionOf)
        tally.keepNames(named)
        await store.rollups.add(tally, retention, nowMs, queries)
        await store.appRollups.add(tally, retention, nowMs, queries)
        const kept = this.#kept(fresh, firsts)
        const unnamed = await store.fingerprintsSeen.add(fingerprintsOf(kept), queries)
        await store.sightings.add(marked(kept, fresh), nowMs, queries, sorted.unsure)
        for (const counter of counters) await counter(kept, queries)
        const added = await events?.(kept, queries, firsts)
        if (!waitsForDisk && (added?.count ?? 0) === 0) await store.sightings.commitSoon(queries)
        return { ...found, kept, unnamed, afterCommit: added?.afterCommit }
      },
    )
    const { counts: totals, durations } = this.#metrics
    totals.stored += kept.length
    totals.duplicates += duplicates
    this.#metrics.onlyCounted.addDifference(fresh, kept, appOf)
    for (let each = 0; each < crowded; each++) this.#refuse('id is not what a proxy makes')
    durations.observe(performance.now() - startedMs)
    afterCommit?.()
    this.#options.stored(kept, unnamed, tally)
  }

  /** Separates what is new. Sightings that came `by` counts are new with them, the others by their own ids. */
  async #sort(received: readonly Received[], counts: readonly CountedRequests[], queries: Queries) {
    const here = new Set(counts)
    const keyOf = ({ sighting, by }: Received) => (by !== null && here.has(by) ? by : sighting)
    const keys = new Set<Sighting | CountedRequests>([...received.map(keyOf), ...counts])
    const sorted = await this.#store.sightings.sort([...keys], this.#options.nowMs(), queries)
    const isFresh = new Set(sorted.fresh)
    const isTaken = new Set(sorted.duplicates)
    const isUnsure = new Set(sorted.unsure)
    const fresh = received.filter((each) => isFresh.has(keyOf(each)))
    return {
      fresh: fresh.map(({ sighting }) => sighting),
      // Their own ids are not recorded: they may have come without their counts before.
      unsure: fresh
        .filter((each) => each.by !== null || isUnsure.has(each.sighting))
        .map(({ sighting }) => sighting),
      ofCounts: counts.filter((each) => isFresh.has(each)),
      duplicates: received.filter((each) => isTaken.has(keyOf(each))).length,
      crowded: sorted.crowded,
    }
  }

  /** Sightings that were not taken because of extreme pressure. */
  #noteLeftOut(all: readonly unknown[], counted: readonly unknown[]): void {
    if (counted.length === all.length) return
    const { lost, onlyCounted } = this.#metrics
    const areOfProxy = (items: readonly unknown[], isCounted: boolean) =>
      items.filter((item) => (((item as Partial<Sighting> | null)?.sampled ?? null) !== null) === isCounted)
    lost.addDifference(areOfProxy(all, false), areOfProxy(counted, false), appNamed)
    onlyCounted.addDifference(areOfProxy(all, true), areOfProxy(counted, true), appNamed)
  }

  /** The first Sighting of an agent is told as an event, so it is stored. */
  #kept(fresh: readonly Sighting[], firsts: readonly Sighting[]): readonly Sighting[] {
    if (this.#pressure === 'none') return fresh
    const share = new Set([...fairShare(fresh, HURRIED_KEPT_MAX, appOf), ...firsts])
    return fresh.filter((sighting) => share.has(sighting))
  }

  #setPressure(pressure: Pressure): void {
    if (pressure === this.#pressure) return
    this.#pressure = pressure
    this.#log.warn(PRESSURES[pressure])
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

interface Received {
  readonly sighting: Sighting
  /** Counts in the same batch; `null`: the Sighting is recognized by its own id. */
  readonly by: CountedRequests | null
}

interface WaitingBatch {
  readonly batch: readonly unknown[]
  readonly counts: readonly unknown[]
  readonly size: number
  resolve(): void
  reject(error: unknown): void
}

/** Each with the share of its app that is kept. */
function marked(kept: readonly Sighting[], fresh: readonly Sighting[]): readonly Sighting[] {
  if (kept.length === fresh.length) return kept
  const shareOf = keptShares(fresh, kept, appOf)
  return kept.map((sighting) => ({ ...sighting, sampled: (sighting.sampled ?? 1) * shareOf(sighting.app) }))
}

function fingerprintsOf(sightings: readonly Sighting[]): FingerprintTally {
  const fingerprints = new FingerprintTally()
  for (const sighting of sightings) fingerprints.add(sighting, clientHash(sighting))
  return fingerprints
}

function appOf({ app }: Sighting): string {
  return app
}

/** As the sender says. Not validated. */
function appNamed(value: unknown): string {
  return String((value as Partial<Sighting> | null)?.app)
}

/** Whether the cause is the data or our code, and not the database. Such an error would recur. */
function isOfSighting(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown }
  return typeof code !== 'string' || OF_SIGHTING.test(code)
}

/** PostgreSQL's classes 22 (data) and 23 (constraints), the SQLite equivalents, and assertions. */
const OF_SIGHTING = /^(?:2[23]\w{3}|SQLITE_(?:CONSTRAINT|TOOBIG|MISMATCH|RANGE)\w*|ERR_\w+)$/
/** About 100 ms of one core, which is short enough for live views. */
const GROUP_MAX = 4_096
/** With few of them stored, a transaction counts so many in about the time in which it stores a group. */
const HURRIED_MAX = 8_192
const HURRIED_KEPT_MAX = 512
const PRESSURES: Readonly<Record<Pressure, string>> = {
  none: 'Sightings come as fast as they can be stored: all are stored again',
  high: 'Sightings come faster than they can be stored: all are counted, and some of each app are stored',
  extreme: 'Sightings come faster than they can be counted: apps with many requests lose some',
}
/** About two seconds of work and 40 MB. The senders had better keep anything beyond that. */
const WAITING_MAX = 65_536
