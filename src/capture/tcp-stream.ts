/** Bytes that all streams of a capture together hold after holes. */
export interface HeldBytes {
  total: number
}

export interface StreamSink {
  /** The next bytes of the stream, valid during the call. A call never joins two segments. */
  data(bytes: Buffer, frame: number): void
  /** `length` bytes were sent and are missing from the capture. */
  gap(length: number): void
}

/** One direction of a TCP connection: takes segments in capture order, gives out bytes in the order sent. */
export class TcpStream {
  /** The sequence number of the SYN. `null` if the capture began later. */
  syn: number | null = null
  readonly #sink: StreamSink
  #started = false
  /** Sequence number of the next expected byte. */
  #next = 0
  /** The highest frame number of the bytes given out so far. */
  #frame = 0
  /** Segments after a hole, by sequence number. None of them is covered by the one before it. */
  readonly #early: EarlySegment[] = []
  #earlyBytes = 0
  readonly #held: HeldBytes

  constructor(sink: StreamSink, held: HeldBytes) {
    this.#sink = sink
    this.#held = held
  }

  /** Takes a SYN. Returns `false` if it begins a new connection. */
  begin(sequence: number): boolean {
    if (this.syn !== null) return this.syn === sequence
    const first = (sequence + 1) | 0
    if (!this.#started) this.#next = first
    // Data that overtook its SYN belongs to the same connection.
    const overtaken = distance(this.#next, first)
    if (overtaken < 0 || overtaken > OVERTAKEN_BYTES_MAX) return false
    this.#started = true
    this.syn = sequence
    return true
  }

  segment(sequence: number, bytes: Buffer, frame: number): void {
    if (!this.#started) {
      // The capture began in mid-connection: the stream starts at the first segment seen.
      this.#started = true
      this.#next = sequence
    }
    if (distance(sequence, this.#next) > 0) return this.#hold(sequence, bytes, frame)
    this.#give(sequence, bytes, frame)
    this.#release()
  }

  /** Whether all bytes before the sequence number of a FIN have arrived. */
  reached(sequence: number): boolean {
    return !this.#started || distance(this.#next, sequence) >= 0
  }

  /** Ends the wait: gives out all held segments, with gaps between them. */
  flush(): void {
    while (this.#early.length > 0) this.#jump()
  }

  /** Gives out the new part of a segment that begins at or before the next expected byte. */
  #give(sequence: number, bytes: Buffer, frame: number): void {
    const known = -distance(sequence, this.#next)
    if (known >= bytes.length) return // retransmission
    this.#next = (sequence + bytes.length) | 0
    // If a late segment fills a hole, the bytes after it count for the frame of that segment.
    this.#frame = Math.max(this.#frame, frame)
    this.#sink.data(known === 0 ? bytes : bytes.subarray(known), this.#frame)
  }

  #hold(sequence: number, bytes: Buffer, frame: number): void {
    if (distance(sequence, this.#next) > WINDOW) return // out of range: another connection, or noise
    const early = this.#early
    let at = early.length
    while (at > 0 && distance(early[at - 1]!.sequence, sequence) > 0) at--
    const before = early[at - 1]
    if (before !== undefined && distance(before.sequence + before.bytes.length, sequence + bytes.length) >= 0)
      return // retransmission
    // A buffer of its own: a slice of Node's pool would keep the whole pool in memory.
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

  /** Gives up the hole before the first held segment. */
  #jump(): void {
    const missing = distance(this.#early[0]!.sequence, this.#next)
    if (missing > 0) {
      this.#next = (this.#next + missing) | 0
      this.#sink.gap(missing)
    }
    this.#release()
  }

  /** Gives out the held segments that are now in order. */
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

/** How far `a` is after `b`. Sequence numbers wrap at 2^32 (RFC 9293 §3.4); negative means before. */
function distance(a: number, b: number): number {
  return (a - b) | 0
}

/** Four times the largest window without scaling. Normally a hole is given up much earlier. */
const EARLY_BYTES_MAX = 256 * 1024
const EARLY_SEGMENTS_MAX = 512
const HELD_BYTES_MAX = 64 * 1024 * 1024
/** The overhead of keeping a segment, besides its bytes. */
const SEGMENT_BYTES = 200
/** The largest possible window (RFC 7323 §2.3). */
const WINDOW = 2 ** 30
const OVERTAKEN_BYTES_MAX = 16 * 1024 * 1024
