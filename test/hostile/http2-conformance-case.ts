import { fieldBlock, frame, getRequest, headers } from '../proxy/http2-frames.ts'
import { CANCEL, CONTINUATION, GOAWAY, HEADERS, PING, RST_STREAM, WINDOW_UPDATE } from './http2-peer.ts'

/** What a client sends, and what it must get. The subjects are h2spec's and the RFC's, the words are ours. */
export interface Case {
  readonly section: string
  readonly title: string
  /** Bytes, or the stream whose answer is waited for. Preface and SETTINGS come first unless it is `bare`. */
  readonly steps: readonly (Buffer | number)[]
  readonly gets: Outcome
  readonly isBare: boolean
  /** Where nghttp2 under node:http2 does something else: what, and why. */
  readonly node: NodeOutcome | null
}

export interface NodeOutcome {
  readonly gets: Outcome
  readonly why: string
}

export type Outcome =
  /** The connection ends; with a GOAWAY of one of these codes, or any end if the list is empty. */
  | { readonly kind: 'ended'; readonly codes: readonly number[] }
  /** One stream is reset, and the connection goes on. */
  | { readonly kind: 'reset'; readonly stream: number; readonly codes: readonly number[] }
  /** A stream is reset, or the connection ends, with one of these codes (RFC 9113 §5.4: the receiver's choice). */
  | { readonly kind: 'fault'; readonly stream: number; readonly codes: readonly number[] }
  /** A malformed request (RFC 9113 §8.1.1): a reset, or 400 first. The app does not get it. */
  | { readonly kind: 'malformed'; readonly stream: number }
  /** These streams are answered with 200 to their end, and the connection goes on. */
  | { readonly kind: 'served'; readonly streams: readonly number[] }
  /** This stream is answered with a status of our own, and the connection goes on. */
  | { readonly kind: 'refused'; readonly stream: number; readonly status: number }
  /** The frames have no effect: no reset, no end. */
  | { readonly kind: 'ignored' }

export type Row = readonly [
  title: string,
  steps: readonly (Buffer | number)[],
  gets: Outcome,
  node?: NodeOutcome,
]

export type Table = Readonly<Record<string, readonly Row[]>>

export const ended = (...codes: number[]): Outcome => ({ kind: 'ended', codes })
export const reset = (stream: number, ...codes: number[]): Outcome => ({ kind: 'reset', stream, codes })
export const fault = (stream: number, ...codes: number[]): Outcome => ({ kind: 'fault', stream, codes })
export const malformed = (stream: number): Outcome => ({ kind: 'malformed', stream })
export const served = (...streams: number[]): Outcome => ({ kind: 'served', streams })
export const refused = (stream: number, status: number): Outcome => ({ kind: 'refused', stream, status })
export const ignored: Outcome = { kind: 'ignored' }
export const node = (why: string, gets: Outcome): NodeOutcome => ({ gets, why })

export const [END_STREAM, ACK, END_HEADERS, PADDED, HAS_PRIORITY] = [1, 1, 4, 8, 0x20] as const
export const MAX_WINDOW = 0x7fff_ffff
export const block = fieldBlock(getRequest())
export const half = Math.floor(block.length / 2)
export const third = Math.floor(block.length / 3)

export const get = (stream: number, ...more: string[]) => headers(stream, getRequest({}, ...more))
/** Its answer never comes. */
export const hold = (stream: number) => headers(stream, getRequest({ ':path': '/hold' }))
export const post = (stream: number, ...more: string[]) =>
  headers(stream, getRequest({ ':method': 'POST' }, ...more), { hasEnded: false })
export const holdPost = (stream: number) =>
  headers(stream, getRequest({ ':method': 'POST', ':path': '/hold' }), { hasEnded: false })
/** HEADERS that CONTINUATION must follow. */
export const open = (stream: number, payload: Uint8Array = block) =>
  frame(HEADERS, END_STREAM, stream, payload)
export const more = (stream: number, payload: Uint8Array, isLast = true) =>
  frame(CONTINUATION, isLast ? END_HEADERS : 0, stream, payload)
export const whole = (stream: number, payload: Uint8Array, flags = 0) =>
  frame(HEADERS, END_STREAM | END_HEADERS | flags, stream, payload)
export const rst = (stream: number, code: number = CANCEL) => frame(RST_STREAM, 0, stream, word(code))
export const ping = (flags = 0, stream = 0, length = 8) => frame(PING, flags, stream, Buffer.alloc(length, 7))
export const goaway = (code: number, stream = 0) =>
  frame(GOAWAY, 0, stream, Buffer.concat([word(0), word(code), Buffer.from('bye')]))
export const grow = (stream: number, payload: Uint8Array, flags = 0) =>
  frame(WINDOW_UPDATE, flags, stream, payload)

export function word(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

export function padded(payload: string | Buffer, length: number, filling = 0): Buffer {
  const bytes = Buffer.from(payload as string, 'latin1')
  return Buffer.concat([Buffer.of(length), bytes, Buffer.alloc(length, filling)])
}

/** What comes instead of preface and SETTINGS. */
export function bare(bytes: string | Buffer): Buffer {
  const step = Buffer.from(bytes as string, 'latin1')
  BARE.add(step)
  return step
}

export function casesOf(table: Table): Case[] {
  return Object.entries(table).flatMap(([section, rows]) =>
    rows.map(([title, steps, gets, node = null]) => {
      const isBare = steps.some((step) => BARE.has(step))
      return { section, title, steps, gets, isBare, node }
    }),
  )
}

const BARE = new Set<Buffer | number>()
