import { createCipheriv, createHash } from 'node:crypto'

/** The bytes that belong to one id and to no other: both ends can make them, and either notices a foreign one. */
export class Pattern {
  #at: number

  constructor(seed: string) {
    this.#at = createHash('sha1').update(seed).digest().readUInt32BE() % POOL_BYTES
  }

  next(length: number): Buffer {
    const bytes = POOL.subarray(this.#at, this.#at + length)
    this.#at = (this.#at + bytes.length) % POOL_BYTES
    return bytes.length === length ? bytes : Buffer.concat([bytes, this.next(length - bytes.length)])
  }

  /** `null`, or what these bytes are instead of the next ones. */
  fault(bytes: Uint8Array): string | null {
    const from = this.#at
    const wanted = this.next(bytes.length)
    if (wanted.equals(bytes)) return null
    const first = wanted.findIndex((byte, at) => byte !== bytes[at])
    const sample = bytes.subarray(first, first + SAMPLE_BYTES)
    const found = POOL.indexOf(sample)
    const place =
      found === -1
        ? JSON.stringify(Buffer.from(sample).toString('latin1'))
        : `those ${found - from - first} further on`
    return `${bytes.length - first} of ${bytes.length} foreign bytes: ${place}`
  }
}

const SAMPLE_BYTES = 40
/** A prime, so that no two bodies fall into step. */
const POOL_BYTES = 1_048_583
const POOL = createCipheriv('aes-128-ctr', Buffer.alloc(16), Buffer.alloc(16)).update(
  Buffer.alloc(POOL_BYTES),
)
