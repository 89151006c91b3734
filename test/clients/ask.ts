import { createHash } from 'node:crypto'

export type Field = readonly [name: string, value: string]

/** One request that a client is to send, in a form that every driver reads. */
export interface Ask {
  readonly method: string
  readonly path: string
  readonly headers: readonly Field[]
  /** The client sends this many bytes of the pattern. */
  readonly upload: number | null
  /** The client does not announce the length of its body. */
  readonly isStreamed: boolean
  readonly trailers: readonly Field[]
  /** After each piece of the answer, the client asks for this path. */
  readonly ack: string | null
  /** The client cancels the request after the first piece of the answer. */
  readonly isCut: boolean
}

/** What the client saw. */
export interface Answer {
  readonly status: number
  readonly headers: readonly Field[]
  readonly length: number
  readonly sha256: string
  readonly trailers: readonly Field[]
  /** Empty unless the request failed in the client. */
  readonly error: string
}

export function ask(path: string, more: Partial<Ask> = {}): Ask {
  return {
    ...{ method: 'GET', path, headers: [], upload: null, isStreamed: false },
    ...{ trailers: [], ack: null, isCut: false, ...more },
  }
}

/** The period is prime, so a piece that is lost, doubled or out of place changes the checksum. */
export function pattern(length: number): Buffer {
  return Buffer.alloc(length, PERIOD)
}

export function sha256(bytes: string | Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

const PERIOD = Uint8Array.from({ length: 251 }, (_, i) => i)
