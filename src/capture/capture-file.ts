import { ByteQueue } from '../wire/byte-queue.ts'

/** The contents of a capture file, in file order. */
export interface CaptureSink {
  /** One captured frame, in `bytes` from `at` to `end`. `bytes` is only valid during the call. */
  packet(frame: number, linkType: number, bytes: Buffer, at: number, end: number): void
  /** Text of a TLS key log in the file. */
  secrets(text: string): void
}

export interface CaptureFault {
  readonly kind: 'not-a-capture' | 'corrupt' | 'truncated'
  /** Offset in the file, in bytes. */
  readonly offset: number
  readonly detail: string
}

/**
 * Reads pcap and pcapng in either byte order as the bytes arrive. Everything before a fault has already gone
 * to the sink when the fault is set. Spec: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
 */
export class CaptureReader {
  /** Once set, it stays. */
  fault: CaptureFault | null = null
  /** The number of frames given to the sink, which is also the number of the last frame. */
  frames = 0
  readonly #sink: CaptureSink
  /** The start of an incomplete record. */
  readonly #waiting = new ByteQueue()
  /** The number of bytes needed before the next attempt. */
  #needed = 1
  /** Remaining bytes of a block that is skipped. */
  #skipping = 0
  /** Offset in the file of the first unread byte. */
  #offset = 0
  /** Offset in the file of the current record. */
  #recordOffset = 0
  #format: Pcap | Pcapng | null = null

  constructor(sink: CaptureSink) {
    this.#sink = sink
  }

  /** The caller may reuse `chunk` afterwards. */
  push(chunk: Buffer): void {
    let at = 0
    // Only the incomplete record is copied. The rest of the chunk is read in place.
    while (this.fault === null && this.#waiting.length > 0) {
      const missing = Math.min(this.#needed - this.#waiting.length, chunk.length - at)
      this.#waiting.push(chunk.subarray(at, at + missing))
      at += missing
      if (this.#waiting.length < this.#needed) return
      this.#waiting.skip(this.#read(asBuffer(this.#waiting.rest())))
    }
    if (this.fault !== null) return this.#waiting.clear()
    this.#waiting.push(chunk.subarray(at + this.#read(chunk.subarray(at))))
    this.#waiting.keep()
  }

  /** `null` until the first bytes decide it. */
  get format(): 'pcap' | 'pcapng' | null {
    return this.#format?.kind ?? null
  }

  /** Ends the file: an incomplete record is a fault. */
  end(): void {
    if (this.fault !== null) return
    const isWhole = this.#waiting.length === 0 && this.#skipping === 0
    if (this.#format === null && isWhole) this.#fail('not-a-capture', 'the file is empty')
    else if (this.#format === null && this.#needed < PCAP_HEADER_BYTES) this.#fail('not-a-capture', NO_MAGIC)
    else if (!isWhole) this.#fail('truncated', 'the file ends inside a record')
  }

  /** Reads whole records from the start of `bytes`. Returns the number of bytes read. */
  #read(bytes: Buffer): number {
    let at = 0
    while (this.fault === null) {
      const skipped = Math.min(this.#skipping, bytes.length - at)
      this.#skipping -= skipped
      at += skipped
      if (this.#skipping > 0) break
      this.#recordOffset = this.#offset + at
      const took = this.#record(bytes, at)
      if (took === 0) break
      at += took
      this.#needed = 1
    }
    this.#offset += at
    return at
  }

  /** Returns the length of the record. 0: more bytes are needed, or there is a fault. */
  #record(bytes: Buffer, at: number): number {
    if (this.#format === null) return this.#begin(bytes, at)
    return this.#format.kind === 'pcap'
      ? this.#pcapRecord(this.#format, bytes, at)
      : this.#block(this.#format, bytes, at)
  }

  #begin(bytes: Buffer, at: number): number {
    if (!this.#has(bytes, at, 4)) return 0
    if (LITTLE.u32(bytes, at) === SECTION_HEADER) {
      this.#format = { kind: 'pcapng', order: LITTLE, interfaces: [] }
      return this.#block(this.#format, bytes, at)
    }
    const order = PCAP_MAGICS.has(LITTLE.u32(bytes, at)) ? LITTLE : BIG
    const magic = order.u32(bytes, at)
    if (!PCAP_MAGICS.has(magic)) return this.#fail('not-a-capture', NO_MAGIC)
    if (!this.#has(bytes, at, PCAP_HEADER_BYTES)) return 0
    const linkType = order.u32(bytes, at + 20) & 0xffff
    this.#format = { kind: 'pcap', order, linkType, recordHeader: magic === MODIFIED_MAGIC ? 24 : 16 }
    return PCAP_HEADER_BYTES
  }

  #pcapRecord(format: Pcap, bytes: Buffer, at: number): number {
    if (!this.#has(bytes, at, format.recordHeader)) return 0
    const captured = format.order.u32(bytes, at + 8)
    if (captured > PACKET_BYTES_MAX)
      return this.#fail('corrupt', `frame ${this.frames + 1} claims ${captured} bytes`)
    const length = format.recordHeader + captured
    if (!this.#has(bytes, at, length)) return 0
    this.#sink.packet(++this.frames, format.linkType, bytes, at + format.recordHeader, at + length)
    return length
  }

  /** pcapng §3.1: every block has its length at both ends. */
  #block(format: Pcapng, bytes: Buffer, at: number): number {
    if (!this.#has(bytes, at, BLOCK_HEADER_BYTES)) return 0
    if (LITTLE.u32(bytes, at) === SECTION_HEADER && !beginSection(format, bytes, at))
      return this.#fail('corrupt', 'a section with no byte order')
    const { u32 } = format.order
    const type = u32(bytes, at)
    const length = u32(bytes, at + 4)
    const isWanted = WANTED_BLOCKS.has(type)
    if (length < BLOCK_HEADER_BYTES || length % 4 !== 0 || (isWanted && length > PACKET_BYTES_MAX))
      return this.#fail('corrupt', `a block of type 0x${type.toString(16)} claims ${length} bytes`)
    if (!isWanted) {
      this.#skipping = length - BLOCK_HEADER_BYTES
      return BLOCK_HEADER_BYTES
    }
    if (!this.#has(bytes, at, length)) return 0
    if (u32(bytes, at + length - 4) !== length)
      return this.#fail('corrupt', 'a block ends with another length than it began')
    const wrong = this.#wantedBlock(format, type, bytes, at, at + length - 4)
    return wrong === null ? length : this.#fail('corrupt', wrong)
  }

  /** Returns what is wrong with the block, or `null`. */
  #wantedBlock(format: Pcapng, type: number, bytes: Buffer, at: number, end: number): string | null {
    const { u16, u32 } = format.order
    switch (type) {
      case INTERFACE_DESCRIPTION:
        if (end - at < 16) return 'an interface without a link type'
        if (format.interfaces.length === INTERFACES_MAX) return 'too many interfaces'
        format.interfaces.push({ linkType: u16(bytes, at + 8), snapLength: u32(bytes, at + 12) })
        return null
      case ENHANCED_PACKET:
      case OLD_PACKET: {
        if (end - at < 28) return TOO_SHORT
        const id = type === ENHANCED_PACKET ? u32(bytes, at + 8) : u16(bytes, at + 8)
        return this.#packet(format.interfaces[id] ?? id, bytes, at + 28, u32(bytes, at + 20), end)
      }
      case SIMPLE_PACKET: {
        if (end - at < 12) return TOO_SHORT
        const snapLength = format.interfaces[0]?.snapLength || Number.POSITIVE_INFINITY
        const captured = Math.min(u32(bytes, at + 8), snapLength, end - at - 12)
        return this.#packet(format.interfaces[0] ?? 0, bytes, at + 12, captured, end)
      }
      case DECRYPTION_SECRETS: {
        if (end - at < 16) return 'secrets too short to hold any'
        const length = Math.min(u32(bytes, at + 12), end - at - 16)
        if (u32(bytes, at + 8) === TLS_KEY_LOG)
          this.#sink.secrets(bytes.toString('latin1', at + 16, at + 16 + length))
        return null
      }
      default:
        return null
    }
  }

  /** `on`: the interface, or the number of one that is missing. */
  #packet(
    on: PcapngInterface | number,
    bytes: Buffer,
    at: number,
    captured: number,
    end: number,
  ): string | null {
    if (typeof on === 'number')
      return `frame ${this.frames + 1} names interface ${on}, which nothing describes`
    if (at + captured > end) return `frame ${this.frames + 1} is longer than its block`
    this.#sink.packet(++this.frames, on.linkType, bytes, at, at + captured)
    return null
  }

  #has(bytes: Buffer, at: number, length: number): boolean {
    if (bytes.length - at >= length) return true
    this.#needed = length
    return false
  }

  #fail(kind: CaptureFault['kind'], detail: string): 0 {
    this.fault = { kind, offset: this.#recordOffset, detail }
    return 0
  }
}

/** A section has its own byte order and its own list of interfaces. */
function beginSection(format: Pcapng, bytes: Buffer, at: number): boolean {
  const order = [LITTLE, BIG].find(({ u32 }) => u32(bytes, at + 8) === BYTE_ORDER)
  if (order === undefined) return false
  format.order = order
  format.interfaces.length = 0
  return true
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

interface Pcap {
  readonly kind: 'pcap'
  readonly order: ByteOrder
  readonly linkType: number
  readonly recordHeader: number
}

interface Pcapng {
  readonly kind: 'pcapng'
  /** The byte order of the current section. */
  order: ByteOrder
  readonly interfaces: PcapngInterface[]
}

interface PcapngInterface {
  readonly linkType: number
  readonly snapLength: number
}

interface ByteOrder {
  readonly u16: (bytes: Buffer, at: number) => number
  readonly u32: (bytes: Buffer, at: number) => number
}

const LITTLE: ByteOrder = {
  u16: (bytes, at) => bytes.readUInt16LE(at),
  u32: (bytes, at) => bytes.readUInt32LE(at),
}
const BIG: ByteOrder = {
  u16: (bytes, at) => bytes.readUInt16BE(at),
  u32: (bytes, at) => bytes.readUInt32BE(at),
}

/** Wireshark's own limit for most link types is 256 KiB. A key log or a reassembled capture may be larger. */
const PACKET_BYTES_MAX = 16 * 1024 * 1024
const INTERFACES_MAX = 65_536

const TOO_SHORT = 'a packet block too short to hold one'
const NO_MAGIC = 'neither pcap nor pcapng'
const MODIFIED_MAGIC = 0xa1b2cd34
/** Microseconds, nanoseconds, and a patched libpcap with longer record headers. */
const PCAP_MAGICS: ReadonlySet<number> = new Set([0xa1b2c3d4, 0xa1b23c4d, MODIFIED_MAGIC])
const PCAP_HEADER_BYTES = 24
const BLOCK_HEADER_BYTES = 12
const BYTE_ORDER = 0x1a2b3c4d
const SECTION_HEADER = 0x0a0d0d0a
const INTERFACE_DESCRIPTION = 1
const OLD_PACKET = 2
const SIMPLE_PACKET = 3
const ENHANCED_PACKET = 6
const DECRYPTION_SECRETS = 10
const TLS_KEY_LOG = 0x544c534b
const WANTED_BLOCKS: ReadonlySet<number> = new Set([
  INTERFACE_DESCRIPTION,
  OLD_PACKET,
  SIMPLE_PACKET,
  ENHANCED_PACKET,
  DECRYPTION_SECRETS,
])
