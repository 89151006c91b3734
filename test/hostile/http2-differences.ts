import { HpackDecoder } from '../../src/wire/h2/hpack-decoder.ts'
import { blockFragment } from '../../src/wire/field-block.ts'
import type { Frame } from '../proxy/http2-frames.ts'
import {
  CONTINUATION,
  DATA,
  FLOW_CONTROL_ERROR,
  GOAWAY,
  HEADERS,
  INTERNAL_ERROR,
  NO_ERROR,
  PING,
  PRIORITY,
  PROTOCOL_ERROR,
  STREAM_CLOSED,
  WINDOW_UPDATE,
} from './http2-peer.ts'

/** What a server has done with some frames. */
export interface Reading {
  /** The code of a GOAWAY with an error, or -1 without one. `null`: the connection lives. */
  readonly end: number | null
  /** The code of each stream that it reset. */
  readonly resets: ReadonlyMap<number, number>
  /** The status of each answer. */
  readonly statuses: ReadonlyMap<number, number>
  /** The requests that the app has read to their end. */
  readonly requests: readonly Request[]
}

export interface Request {
  /** `null` if the server does not say. */
  readonly stream: number | null
  /** All of it. */
  readonly text: string
  readonly trailers: readonly string[]
  /** What an app of HTTP/1.1 would misread of it. */
  readonly misread: string | null
}

/** What is wrong with our server's reading beside that of nghttp2, or `null`. */
export function wrongIn(frames: readonly Frame[], own: Reading, node: Reading): string | null {
  for (const { misread } of own.requests)
    if (misread !== null) return `forwards what llhttp misreads: ${misread}`
  if (goesOn(own, node)) return `goes on where nghttp2 ends the connection with ${node.end}`
  const listed = new Set<number>()
  for (const [stream, code] of node.resets) {
    if (code === NO_ERROR || isRefused(own, stream)) continue
    if (code !== PROTOCOL_ERROR || !leavesTrailersOut(frames, own, stream))
      return `accepts stream ${stream}, which nghttp2 resets with ${code}`
    listed.add(stream)
  }
  if (own.end !== null || node.end !== null) return null
  const refused = [...own.resets.keys(), ...own.statuses.keys()].filter((stream) => isRefused(own, stream))
  const requests = own.requests.filter(({ stream }) => stream === null || !listed.has(stream))
  const more = without(requests, node.requests)
  const fewer = without(node.requests, requests)
  if (more.length > 0) return `reads what nghttp2 does not: ${more} / ${fewer}`
  return fewer.length > new Set(refused).size ? `does not read what nghttp2 does: ${fewer}` : null
}

/** With NO_ERROR nghttp2 refuses nothing: Node ends a connection whose client has said GOAWAY. */
export function goesOn(own: Reading, node: Reading): boolean {
  return node.end !== null && node.end !== NO_ERROR && own.end === null
}

/** The texts of `some` that are not in `others`, where each counts once. */
function without(some: readonly Request[], others: readonly Request[]): string[] {
  const left = others.map(({ text }) => text)
  return some.flatMap(({ text }) => {
    const at = left.indexOf(text)
    if (at === -1) return [text]
    left.splice(at, 1)
    return []
  })
}

function isRefused({ end, resets, statuses }: Reading, stream: number): boolean {
  return end !== null || (resets.get(stream) ?? 0) !== 0 || (statuses.get(stream) ?? 0) >= 400
}

/**
 * RFC 9110 §6.5.1: "Many fields cannot be processed outside the header section because their evaluation is necessary
 * prior to receiving the content, such as those that describe message framing, routing, … However, in most cases, the
 * trailers are simply discarded." We leave such fields out. nghttp2 counts Host and Content-Length of the trailers
 * among those of the header section, and resets the stream if there are two or if the length is wrong.
 */
function leavesTrailersOut(frames: readonly Frame[], { requests }: Reading, stream: number): boolean {
  const sections = sectionsOf(frames, stream)
  const request = requests.find((one) => one.stream === stream)
  if (sections.length !== 2) return false
  const names = sections[1]!.filter((_, index) => index % 2 === 0)
  // The app does not hear of a request that its client takes back in the same turn.
  const left = (request?.trailers ?? []).filter((_, index) => index % 2 === 0)
  const isCounted = (name: string) => name === 'host' || name === 'content-length'
  return names.some(isCounted) && !left.some(isCounted)
}

/** A frame, or a whole header block, at which nghttp2 ends the connection and we do not. */
interface KnownEnd {
  /** The sentence of the RFC. */
  readonly reason: string
  readonly code: number
  /** `frame` is the frame, or the HEADERS of the block. */
  explains(frame: Frame, before: readonly Frame[], own: Reading): boolean
}

export const KNOWN_ENDS: readonly KnownEnd[] = [
  {
    reason:
      'RFC 9113 §8.1.1: "Malformed requests or responses that are detected MUST be treated as a stream error (Section ' +
      '5.4.2) of type PROTOCOL_ERROR." One is a body that has not the length of its content-length field. We answer 400 ' +
      'before the reset: "a server MAY send an HTTP response prior to closing or resetting the stream".',
    code: INTERNAL_ERROR,
    explains: (frame, before, own) =>
      frame.type === DATA && isRefused(own, frame.stream) && hasWrongLength([...before, frame], frame.stream),
  },
  {
    reason:
      'RFC 9113 §5.1: "If an endpoint receives additional frames, other than WINDOW_UPDATE, PRIORITY, or RST_STREAM, ' +
      'for a stream that is in this state, it MUST respond with a stream error (Section 5.4.2) of type STREAM_CLOSED." ' +
      'And once it is closed: "An endpoint MAY treat receipt of any other type of frame on a closed stream as a ' +
      'connection error". We do so unless we have reset the stream ourselves.',
    code: STREAM_CLOSED,
    explains: ({ type, stream }, before, own) =>
      (type === DATA || type === HEADERS) &&
      own.resets.has(stream) &&
      before.some((one) => one.stream === stream && endsStream(one)),
  },
  {
    reason:
      'RFC 7540 §5.3.1: "A stream cannot depend on itself. An endpoint MUST treat this as a stream error (Section ' +
      '5.4.2) of type PROTOCOL_ERROR."',
    code: PROTOCOL_ERROR,
    explains: (frame, _before, own) => dependsOnItself(frame) && own.resets.has(frame.stream),
  },
  {
    reason:
      'RFC 9113 §6.9.1: "If a sender receives a WINDOW_UPDATE that causes a flow-control window to exceed this maximum, ' +
      'it MUST terminate either the stream or the connection, as appropriate." We reset the stream, as nghttp2 does; ' +
      'Node then ends the connection. §6.9, where the stream is answered: "a receiver could receive a WINDOW_UPDATE frame ' +
      'on a stream in a "half-closed (remote)" or "closed" state. A receiver MUST NOT treat this as an error".',
    code: FLOW_CONTROL_ERROR,
    explains: ({ type, stream }, before, own) =>
      type === WINDOW_UPDATE &&
      (own.resets.get(stream) === FLOW_CONTROL_ERROR ||
        (own.statuses.has(stream) && before.some((one) => one.stream === stream && endsStream(one)))),
  },
  {
    reason:
      'RFC 9113 §6.9: "A receiver MUST treat the receipt of a WINDOW_UPDATE frame with a flow-control window increment ' +
      'of 0 as a stream error (Section 5.4.2) of type PROTOCOL_ERROR". nghttp2 ends the connection.',
    code: PROTOCOL_ERROR,
    explains: ({ type, stream, payload }, _before, own) =>
      type === WINDOW_UPDATE &&
      stream !== 0 &&
      (payload.readUInt32BE(0) & 0x7fff_ffff) === 0 &&
      (own.resets.has(stream) || own.statuses.has(stream)),
  },
]

/**
 * The frames without those that a server ignores and node:http2 does not, where they may stand. RFC 9113 §6.8: GOAWAY has
 * "the stream identifier of the last peer-initiated stream", and we initiate no streams. §6.7 of an acknowledged PING:
 * "An endpoint MUST NOT respond to PING frames containing this flag."
 */
export function withoutIgnored(frames: readonly Frame[]): Frame[] {
  let isWithinBlock = false
  return frames.filter((frame, index) => {
    const { type, flags, stream, payload } = frame
    const isGoaway = type === GOAWAY && payload.length >= 8
    const isPingAck = type === PING && payload.length === 8 && (flags & ACK) !== 0
    if (stream === 0 && (isGoaway || isPingAck)) return isWithinBlock || index === 0
    if (type === HEADERS || type === CONTINUATION) isWithinBlock = (flags & END_HEADERS) === 0
    return true
  })
}

/** RFC 9113 §4.1: the reserved bit before the stream identifier "MUST be ignored when receiving". */
export function withoutReserved(frame: Frame): Frame {
  return { ...frame, stream: frame.stream & 0x7fff_ffff }
}

/** Frames one by one, but header blocks whole. */
export function unitsOf(frames: readonly Frame[]): Frame[][] {
  const units: Frame[][] = []
  let isWithinBlock = false
  for (const frame of frames) {
    if (isWithinBlock) units.at(-1)!.push(frame)
    else units.push([frame])
    if (frame.type === HEADERS || frame.type === CONTINUATION)
      isWithinBlock = (frame.flags & END_HEADERS) === 0
  }
  return units
}

function hasWrongLength(frames: readonly Frame[], stream: number): boolean {
  const head = sectionsOf(frames, stream)[0] ?? []
  const length = Number(head[head.indexOf('content-length') + 1])
  const data = frames.filter((one) => one.type === DATA && one.stream === stream)
  const received = data.reduce((sum, one) => sum + bytesOf(one), 0)
  return received > length || (received < length && data.some(endsStream))
}

function bytesOf({ flags, payload }: Frame): number {
  return (flags & PADDED) === 0 ? payload.length : payload.length - 1 - payload[0]!
}

/** The field sections of a stream: its head and its trailers. */
function sectionsOf(frames: readonly Frame[], stream: number): string[][] {
  const decoder = new HpackDecoder({ tableBytesMax: 4096, listBytesMax: 1e9, fieldsMax: 1e6 })
  const sections: string[][] = []
  let block: Uint8Array[] = []
  for (const { type, flags, stream: at, payload } of frames) {
    if (type !== HEADERS && type !== CONTINUATION) continue
    block.push(type === HEADERS ? (blockFragment(payload, flags) ?? NOTHING) : payload)
    if ((flags & END_HEADERS) === 0) continue
    const fields: string[] = []
    if (decoder.decode(Buffer.concat(block), fields) === 'malformed') break
    block = []
    if (at === stream) sections.push(fields)
  }
  return sections
}

function dependsOnItself({ type, flags, stream, payload }: Frame): boolean {
  const at = type === HEADERS && flags & PADDED ? 1 : 0
  const hasPriority = type === PRIORITY || (type === HEADERS && (flags & HAS_PRIORITY) !== 0)
  return hasPriority && payload.length >= at + 4 && (payload.readUInt32BE(at) & 0x7fff_ffff) === stream
}

function endsStream({ type, flags }: Frame): boolean {
  return (type === DATA || type === HEADERS) && (flags & END_STREAM) !== 0
}

const NOTHING = Buffer.alloc(0)
const [ACK, END_STREAM, END_HEADERS, PADDED, HAS_PRIORITY] = [1, 1, 4, 8, 0x20]
