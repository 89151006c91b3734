/** What all streams of a capture together hold after holes, in bytes. */
export interface HeldBytes {
  total: number
}

export interface StreamSink {
  /** The next bytes of the stream, valid during the call; a call never joins two segments. */
  data(bytes: Buffer, frame: number): void
  /** `length` bytes were sent and are not in the capture. */
  gap(length: number): void
}

/** One direction of a TCP connection: segments as captured in, bytes as sent out. */
export class TcpStream {
  /** The sequence number of its SYN; `null` when the capture began later. */
  syn: number | null = null
  readonly #sink: StreamSink
  #started = false
  /** Sequence number of the next byte wanted. */
  #next = 0
  /** The last frame of those that brought what was given out. */
  #frame = 0
  /** Segments after a hole, by sequence number, not overlapping what is before `#next`. */
  readonly #early: EarlySegment[] = []
  #earlyBytes = 0
  readonly #held: HeldBytes

  constructor(sink: StreamSink, held: HeldBytes) {
    this.#sink = sink
    this.#held = held
  }

  /** The sequence number of a SYN; `false` when it begins another connection than the one going on. */
  begin(sequence: number): boolean {
    if (this.syn !== null) return this.syn === sequence
    const first = (sequence + 1) | 0
    if (!this.#started) this.#next = first
    // Data that overtook its SYN is the same connection's.
    const overtaken = distance(this.#next, first)
    if (overtaken < 0 || overtaken > OVERTAKEN_BYTES_MAX) return false
    this.#started = true
    this.syn = sequence
    return true
  }

  segment(sequence: number, bytes: Buffer, frame: number): void {
    if (!this.#started) {
      // The capture began in mid-connection: the first segment seen is the beginning.
      this.#started = true
      this.#next = sequence
    }
    if (distance(sequence, this.#next) > 0) return this.#hold(sequence, bytes, frame)
    this.#give(sequence, bytes, frame)
    this.#release()
  }

  /** Whether all before the sequence number of a FIN is there. */
  reached(sequence: number): boolean {
    return !this.#started || distance(this.#next, sequence) >= 0
  }

  /** No more will come, or the wait is over: what is held goes out, with gaps between. */
  flush(): void {
    while (this.#early.length > 0) this.#jump()
  }

  /** What of a segment at or before the next byte wanted is new. */
  #give(sequence: number, bytes: Buffer, frame: number): void {
    const known = -distance(sequence, this.#next)
    if (known >= bytes.length) return // sent again
    this.#next = (sequence + bytes.length) | 0
    // A hole filled late is filled in the frame that did it.
    this.#frame = Math.max(this.#frame, frame)
    this.#sink.data(known === 0 ? bytes : bytes.subarray(known), this.#frame)
  }

  #hold(sequence: number, bytes: Buffer, frame: number): void {
    if (distance(sequence, this.#next) > WINDOW) return // nowhere near: another connection's, or noise
    const early = this.#early
    let at = early.length
    while (at > 0 && distance(early[at - 1]!.sequence, sequence) > 0) at--
    const before = early[at - 1]
    if (before !== undefined && distance(before.sequence + before.bytes.length, sequence + bytes.length) >= 0)
      return // sent again
    // Of its own: a piece of Node's pool would keep all of that.
    const own = Buffer.allocUnsafeSlow(bytes.length)
    bytes.copy(own)
    early.splice(at, 0, { sequence, bytes: own, frame })
    this.#count(bytes.length + SEGMENT_BYTES)
    while (this.#holdsTooMuch()) this.#jump()
  }

  #holdsTooMuch(): boolean {
    return (
      this.#early.length > EARLY_SEGMENTS_MAX ||
      this.#earlyBytes > EARLY_BYTES_MAX ||
      (this.#held.total > HELD_BYTES_MAX && this.#early.length > 0)
    )
  }

  /** Gives up on the hole before the first held segment. */
  #jump(): void {
    const missing = distance(this.#early[0]!.sequence, this.#next)
    if (missing > 0) {
      this.#next = (this.#next + missing) | 0
      this.#sink.gap(missing)
    }
    this.#release()
  }

  /** Gives out what is held and now in order. */
  #release(): void {
    const early = this.#early
    let taken = 0
    while (taken < early.length && distance(early[taken]!.sequence, this.#next) <= 0) {
      const { sequence, bytes, frame } = early[taken]!
      taken++
      this.#count(-bytes.length - SEGMENT_BYTES)
      this.#give(sequence, bytes, frame)
    }
    if (taken > 0) early.splice(0, taken)
  }

  #count(bytes: number): void {
    this.#earlyBytes += bytes
    this.#held.total += bytes
  }
}

interface EarlySegment {
  readonly sequence: number
  readonly bytes: Buffer
  readonly frame: number
}

/** How far `a` is after `b`, sequence numbers going round at 2^32 (RFC 9293 §3.4): half the way round is before. */
function distance(a: number, b: number): number {
  return (a - b) | 0
}

/** Four times the largest window a connection without scaling has; a hole is given up long before. */
const EARLY_BYTES_MAX = 256 * 1024
const EARLY_SEGMENTS_MAX = 512
const HELD_BYTES_MAX = 64 * 1024 * 1024
/** What keeping a segment costs beside its bytes. */
const SEGMENT_BYTES = 200
/** The largest window there is (RFC 7323 §2.3). */
const WINDOW = 2 ** 30
const OVERTAKEN_BYTES_MAX = 16 * 1024 * 1024
