import type { ProxyBus } from '../../plane/bus.ts'
import type { Sighting } from '../../plane/sighting.ts'

export interface RecorderCounts {
  /** Passed to `record`. */
  recorded: number
  /** Delivered to the management plane. */
  delivered: number
  /** Lost: there was no room, or the process ended first. */
  dropped: number
}

export interface RecorderOptions {
  /** How many may wait for the management plane. */
  readonly waitingMax?: number
  readonly beatMs?: number
}

/**
 * Takes Sightings off the hot path: `record` puts one into a ring buffer, and batches are sent at intervals.
 * While the management plane is away they wait. If the ring is full, the newest are dropped and counted.
 */
export class Recorder {
  readonly counts: RecorderCounts = { recorded: 0, delivered: 0, dropped: 0 }
  readonly #bus: ProxyBus
  readonly #batchMax: number
  readonly #ring: (Sighting | null)[]
  readonly #beat: NodeJS.Timeout
  #oldest = 0
  #waiting = 0
  #sending: Promise<void> | null = null
  #closed = false

  constructor(bus: ProxyBus, { waitingMax = WAITING_MAX, beatMs = BEAT_MS }: RecorderOptions = {}) {
    this.#bus = bus
    this.#batchMax = bus.batchMax
    this.#ring = new Array<Sighting | null>(waitingMax).fill(null)
    this.#beat = setInterval(() => this.#flush(), beatMs).unref()
  }

  record(sighting: Sighting): void {
    this.counts.recorded++
    if (this.#waiting === this.#ring.length || this.#closed) {
      this.counts.dropped++
      return
    }
    let at = this.#oldest + this.#waiting
    if (at >= this.#ring.length) at -= this.#ring.length
    this.#ring[at] = sighting
    // A full batch is sent at once: under load the interval alone would fill the ring.
    if (++this.#waiting % this.#batchMax === 0 && this.#sending === null) setImmediate(() => this.#flush())
  }

  /** Sends the waiting Sightings until the deadline. Accepts no more from here on. */
  async close(deadlineMs: number): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    clearInterval(this.#beat)
    const deadline = Promise.withResolvers<'over'>()
    const timer = setTimeout(deadline.resolve, deadlineMs, 'over')
    while (this.#waiting > 0) {
      const before = this.counts.delivered
      this.#flush()
      if ((await Promise.race([this.#sending, deadline.promise])) === 'over') break
      if (this.counts.delivered === before) break // rejected, or there is no receiver
    }
    clearTimeout(timer)
    this.counts.dropped += this.#waiting
    this.#waiting = 0
  }

  #flush(): void {
    if (this.#sending !== null || this.#waiting === 0) return
    const batch = this.#batch()
    this.#sending = this.#bus.sendSightings(batch).then(
      () => this.#delivered(batch.length),
      () => {
        this.#sending = null // they stay in the ring for the next attempt
      },
    )
  }

  #batch(): Sighting[] {
    const batch: Sighting[] = []
    const size = Math.min(this.#waiting, this.#batchMax)
    for (let i = 0; i < size; i++) batch.push(this.#ring[(this.#oldest + i) % this.#ring.length]!)
    return batch
  }

  #delivered(size: number): void {
    this.#sending = null
    if (this.#waiting === 0) return // closed, and already counted as dropped
    this.counts.delivered += size
    for (let i = 0; i < size; i++) {
      this.#ring[this.#oldest] = null
      this.#oldest = (this.#oldest + 1) % this.#ring.length
    }
    this.#waiting -= size
    if (this.#waiting >= this.#batchMax) setImmediate(() => this.#flush())
  }
}

/** Two seconds of 4,000 requests a second. 5 MB at some 600 bytes each. */
const WAITING_MAX = 8192
/** The maximum delay of the live view. */
const BEAT_MS = 200
