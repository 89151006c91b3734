import { ByteQueue } from '../../../wire/byte-queue.ts'
import { blockFragment } from '../../../wire/field-block.ts'
import { CONTINUATION, HAS_PRIORITY, PADDED, u31At } from '../../../wire/h2/frame.ts'
import type { FrameHead } from '../../../wire/h2/frame-rules.ts'
import { ABUSE } from './abuse.ts'

/** One header block in the making: HEADERS and its CONTINUATION frames. */
export class HeaderBlock {
  /** 0 between blocks. */
  stream = 0
  /** The flags of its HEADERS. */
  flags = 0
  /** The stream on which its stream depends by its HEADERS (RFC 7540 §5.3.1). -1 without a priority. */
  dependsOn = -1
  /** The payload of its HEADERS, if that is all of it. */
  #whole: Uint8Array | null = null
  #joined: ByteQueue | null = null
  #continuations = 0

  /**
   * What is wrong with one more frame, as a name of ABUSE, or `null`. `listBytesMax` is the limit of the decoded
   * fields.
   */
  excess({ type, length }: FrameHead, listBytesMax: number): string | null {
    if ((this.#joined?.length ?? 0) + length > listBytesMax + BLOCK_OVERHEAD) return ABUSE.longBlock
    const isOneMore = type === CONTINUATION && this.#continuations === CONTINUATIONS_MAX
    return isOneMore ? ABUSE.manyContinuations : null
  }

  /** Begins with the payload of HEADERS. `false`: its padding or priority is longer than the payload. */
  begin(stream: number, flags: number, payload: Uint8Array, isWhole: boolean): boolean {
    const fragment = blockFragment(payload, flags)
    if (fragment === null) return false
    this.stream = stream
    this.flags = flags
    this.#continuations = 0
    this.dependsOn = flags & HAS_PRIORITY ? u31At(payload, flags & PADDED ? 1 : 0) : -1
    if (isWhole) this.#whole = fragment
    else this.#add(fragment)
    return true
  }

  /** Adds the payload of a CONTINUATION. */
  add(payload: Uint8Array): void {
    this.#continuations++
    this.#add(payload)
  }

  /** Ends the block. The bytes are valid until the next one begins. */
  end(): Uint8Array {
    this.stream = 0
    const bytes = this.#whole ?? this.#joined!.rest()
    this.#whole = null
    this.#joined = null
    return bytes
  }

  #add(bytes: Uint8Array): void {
    this.#joined ??= new ByteQueue()
    this.#joined.push(bytes)
    this.#joined.keep()
  }
}

/** What a block may have beyond the limit of its list: lengths, and fields that are counted apart. */
const BLOCK_OVERHEAD = 16_384
/** The size of a browser's longest head takes five. */
const CONTINUATIONS_MAX = 16
