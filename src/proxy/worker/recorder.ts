import type { ProxyBus } from '../../plane/bus.ts'
import { CountsByApp } from '../../apps/counts-by-app.ts'
import { type RequestCounts, requestCounts } from '../../plane/counts/request-counts.ts'
import { RollupTally } from '../../plane/counts/rollup-tally.ts'
import type { ClientPrivacy } from '../../plane/privacy/client-privacy.ts'
import type { Sighting, SightingId } from '../../plane/sighting.ts'
import { type OwnSighting, Sampler, type SamplingSettings } from './sampler.ts'
import { SightingRing } from './sighting-ring.ts'

export interface RecorderCounts {
  /** Passed to `record`. */
  recorded: number
  /** Delivered to the management plane. */
  delivered: number
  /** Lost: there was no room, or the process ended first. */
  dropped: number
  /** Left out by sampling. */
  sampledOut: number
  /** Requests whose counts are delivered to the management plane. */
  counted: number
}

export interface RecorderOptions {
  /** How many may wait for the management plane. */
  readonly waitingMax?: number
  readonly beatMs?: number
  /** `null`: all Sightings are sent. */
  readonly sampling?: SamplingSettings | null
  /** What it sends of clients; `null`: everything. */
  readonly privacy?: Pick<ClientPrivacy, 'apply'> | null
}

type SightingLine = Pick<ProxyBus, 'batchMax' | 'sendSightings'>

/**
 * Takes Sightings off the hot path: `record` puts one into a ring buffer, and batches are sent at intervals. While the
 * management plane is away they wait. If the ring is full, the app that has the most in it loses one. Each request is
 * counted when its Sighting leaves the ring, also if it is lost, and the counts go with the next batch.
 */
export class Recorder {
  readonly counts: RecorderCounts = { recorded: 0, delivered: 0, dropped: 0, sampledOut: 0, counted: 0 }
  readonly droppedByApp = new CountsByApp()
  /** Whether the management plane takes counts. */
  takesCounts = false
  readonly #bus: SightingLine
  readonly #nextId: () => string
  readonly #ring: SightingRing
  readonly #beat: NodeJS.Timeout
  readonly #sampler: Sampler | null
  readonly #privacy: Pick<ClientPrivacy, 'apply'> | null
  #tally = new RollupTally()
  #sentMs = 0
  /** It stays as it is until it is delivered, because it may have arrived before. */
  #batch: Batch = NOTHING
  #sending: Promise<void> | null = null
  #isClosed = false

  /** `nextId`: makes ids that no Sighting has. */
  constructor(
    bus: SightingLine,
    nextId: () => string,
    { waitingMax = WAITING_MAX, beatMs = BEAT_MS, sampling = null, privacy = null }: RecorderOptions = {},
  ) {
    this.#bus = bus
    this.#nextId = nextId
    this.#ring = new SightingRing(waitingMax)
    this.#privacy = privacy
    this.#sampler = sampling === null ? null : new Sampler(sampling, performance.now())
    this.#beat = setInterval(() => this.#flush(), beatMs).unref()
  }

  /** Requests that are counted, and whose counts are not delivered yet. */
  get waitingCounts(): number {
    return this.#tally.requests + this.#batch.requests
  }

  record(sighting: Sighting): void {
    this.counts.recorded++
    const lost = this.#isClosed ? sighting : this.#ring.add(sighting)
    if (lost !== null) return this.#drop(lost)
    // A full batch is sent at once: under load the interval alone would fill the ring.
    if (this.#ring.length % this.#bus.batchMax === 0 && this.#sending === null)
      setImmediate(() => this.#flush())
  }

  /** Sends the waiting Sightings and counts until the deadline. Accepts no more from here on. */
  async close(deadlineMs: number): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    clearInterval(this.#beat)
    const deadline = Promise.withResolvers<'over'>()
    const timer = setTimeout(deadline.resolve, deadlineMs, 'over')
    while (this.#isWaiting) {
      this.#flush()
      const batch = this.#batch
      if ((await Promise.race([this.#sending, deadline.promise])) === 'over') break
      if (this.#batch === batch) break // the plane rejected the batch, or is not connected
    }
    clearTimeout(timer)
    const lost = [...this.#batch.sightings, ...this.#ring.take(this.#ring.length)]
    this.#batch = NOTHING
    for (const sighting of lost) this.#drop(sighting)
  }

  get #isWaiting(): boolean {
    return this.#batch !== NOTHING || this.#ring.length > 0 || this.#tally.requests > 0
  }

  #flush(): void {
    if (this.#sending !== null) return
    if (this.#batch === NOTHING) this.#batch = this.#nextBatch()
    if (this.#batch === NOTHING) return this.#flushIfFull()
    const { sightings, counts } = this.#batch
    this.#sending = this.#bus.sendSightings(sightings, counts).then(
      () => this.#delivered(),
      () => {
        this.#sending = null // the batch stays for the next attempt
      },
    )
  }

  #nextBatch(): Batch {
    const nowMs = performance.now()
    const sightings: readonly OwnSighting[] = this.takesCounts
      ? this.#countNext(nowMs)
      : this.#ring.take(this.#bus.batchMax)
    if (this.#privacy !== null) for (const sighting of sightings) this.#privacy.apply(sighting)
    const { requests } = this.#tally
    if (requests === 0) return sightings.length === 0 ? NOTHING : { ...NOTHING, sightings }
    if (sightings.length === 0 && nowMs - this.#sentMs < COUNTS_MS && !this.#isClosed) return NOTHING
    this.#sentMs = nowMs
    const counts = [requestCounts(this.#nextId() as SightingId, this.#tally)]
    this.#tally = new RollupTally()
    return { sightings, counts, requests }
  }

  /** Counts the next requests. Returns the Sightings of those that are to be sent. */
  #countNext(nowMs: number): readonly Sighting[] {
    const sampler = this.#sampler
    const taken = this.#ring.take(sampler?.isLimited === true ? this.#ring.length : this.#bus.batchMax)
    for (const sighting of taken) this.#count(sighting)
    if (sampler === null) return taken
    const chosen = sampler.choose(taken, nowMs)
    this.counts.sampledOut += taken.length - chosen.length
    return chosen
  }

  #delivered(): void {
    this.#sending = null
    this.counts.delivered += this.#batch.sightings.length
    this.counts.counted += this.#batch.requests
    this.#batch = NOTHING
    this.#flushIfFull()
  }

  #flushIfFull(): void {
    if (this.#ring.length >= this.#bus.batchMax) setImmediate(() => this.#flush())
  }

  #drop(sighting: Sighting): void {
    this.counts.dropped++
    this.droppedByApp.add(sighting.app)
    if (this.takesCounts && sighting.sampled === null) this.#count(sighting)
  }

  /** Only the recorder has the Sighting by now. */
  #count(sighting: OwnSighting): void {
    sighting.sampled = 1
    this.#tally.add(sighting)
    while (this.#tally.size > TALLY_SIZE_MAX && this.#tally.shrink());
  }
}

interface Batch {
  readonly sightings: readonly Sighting[]
  readonly counts: readonly RequestCounts[]
  /** The number of requests that the counts are of. */
  readonly requests: number
}

const NOTHING: Batch = { sightings: [], counts: [], requests: 0 }
/** Two seconds of 4,000 requests a second. 5 MB at some 600 bytes each. */
const WAITING_MAX = 8192
/** The maximum delay of the live view. */
const BEAT_MS = 200
/** How often counts are sent without a Sighting. */
const COUNTS_MS = 1_000
/** 2 MB of memory, and some 100 KB in a message. Reached if the management plane is away for long. */
const TALLY_SIZE_MAX = 20_000
