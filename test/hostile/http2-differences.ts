import { type Frame, framesOf } from '../proxy/http2-frames.ts'
import { GOAWAY, HEADERS } from './http2-peer.ts'

/** What a server has done with some frames. */
export interface Reading {
  /** The code of a GOAWAY with an error, or -1 without one. `null`: the connection lives. */
  readonly end: number | null
  /** The code of each stream that it reset. */
  readonly resets: ReadonlyMap<number, number>
  /** The status of each answer. */
  readonly statuses: ReadonlyMap<number, number>
  /** The requests that the app has read to their end, as text. */
  readonly requests: readonly string[]
}

/** What is wrong with our server's reading beside that of nghttp2, or `null`. */
export function wrongIn(bytes: Buffer, own: Reading, node: Reading): string | null {
  if (KNOWN.some(({ explains }) => explains(framesOf(bytes), own, node))) return null
  if (node.end !== null && own.end === null) return 'goes on where nghttp2 ends the connection'
  for (const [stream, code] of node.resets)
    if (code !== NO_ERROR && !isRefused(own, stream)) return `accepts stream ${stream}, which nghttp2 resets`
  if (own.end !== null || node.end !== null) return null
  const refused = [...own.resets.keys(), ...own.statuses.keys()].filter((stream) => isRefused(own, stream))
  const more = own.requests.filter((text) => !node.requests.includes(text))
  const fewer = node.requests.filter((text) => !own.requests.includes(text))
  if (more.length > 0) return `reads what nghttp2 does not: ${more} / ${fewer}`
  return fewer.length > new Set(refused).size ? `does not read what nghttp2 does: ${fewer}` : null
}

function isRefused({ end, resets, statuses }: Reading, stream: number): boolean {
  return end !== null || (resets.get(stream) ?? 0) !== 0 || (statuses.get(stream) ?? 0) >= 400
}

/** Where our server goes on, or reads otherwise, and is right. */
interface Known {
  /** The sentence of the RFC. */
  readonly reason: string
  explains(frames: readonly Frame[], own: Reading, node: Reading): boolean
}

const KNOWN: readonly Known[] = [
  {
    reason: '§7: INTERNAL_ERROR is a fault of the endpoint itself, which node:http2 finds in its own calls.',
    explains: (_frames, _own, node) => node.end === INTERNAL_ERROR,
  },
  {
    reason:
      '§5.1: frames on a half-closed stream are a stream error of type STREAM_CLOSED. nghttp2 ends the connection. ' +
      'And an endpoint MUST ignore frames that it receives on closed streams after it has sent RST_STREAM.',
    explains: (_frames, own, node) => node.end === STREAM_CLOSED && own.end === null && own.resets.size > 0,
  },
  {
    reason: '§6.8: GOAWAY is about streams of the receiver. We begin none, and serve those of the client.',
    explains: (frames, own, node) =>
      own.end === null && (node.end ?? NO_ERROR) <= PROTOCOL_ERROR && frames.some(isGoaway),
  },
  {
    reason:
      'RFC 7540 §5.3.1: a stream that depends on itself is a stream error. nghttp2 ends the connection.',
    explains: (frames, own, node) =>
      node.end === PROTOCOL_ERROR && frames.some((one) => dependsOnItself(one) && isRefused(own, one.stream)),
  },
  {
    reason:
      'RFC 9110 §6.5.1: a trailer field that cannot be one, as a second host or an empty content-length, is left out. ' +
      'nghttp2 takes it for the field of a header section.',
    explains: (frames, own, node) =>
      own.end === null &&
      node.end === null &&
      [...node.resets].every(
        ([stream, code]) =>
          isRefused(own, stream) || (code === PROTOCOL_ERROR && hasTrailers(frames, stream)),
      ) &&
      node.resets.size > 0,
  },
]

function dependsOnItself({ type, flags, stream, payload }: Frame): boolean {
  const at = flags & PADDED ? 1 : 0
  if (type !== HEADERS || (flags & HAS_PRIORITY) === 0 || payload.length < at + 4) return false
  return (payload.readUInt32BE(at) & 0x7fff_ffff) === stream
}

function hasTrailers(frames: readonly Frame[], stream: number): boolean {
  return frames.filter((one) => one.type === HEADERS && one.stream === stream).length > 1
}

function isGoaway({ type, stream }: Frame): boolean {
  return type === GOAWAY && stream === 0
}

const [NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, STREAM_CLOSED] = [0, 1, 2, 5]
const [PADDED, HAS_PRIORITY] = [8, 0x20]
