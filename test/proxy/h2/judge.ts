import {
  CONTINUATION,
  DATA,
  GOAWAY,
  HEADERS,
  PING,
  RST_STREAM,
  SETTINGS,
  WINDOW_UPDATE,
} from '../../hostile/http2-peer.ts'
import type { Frame } from '../http2-frames.ts'

/** The most that a client has ever allowed its server, whenever that was read. */
export interface Allowance {
  frameBytes: number
  /** The largest window of a new stream. */
  initialWindow: number
  /** What WINDOW_UPDATE has added, by stream; 0 is the connection. */
  readonly granted: Map<number, number>
  settingsSent: number
  /** Opened by HEADERS. */
  readonly opened: Set<number>
}

export function allowance(): Allowance {
  return { frameBytes: 16_384, initialWindow: 65_535, granted: new Map(), settingsSent: 0, opened: new Set() }
}

/** What a server has done that RFC 9113 forbids, read from its frames alone. */
export function faultsOf(frames: readonly Frame[], allowed: Allowance): string[] {
  const faults: string[] = []
  const over = new Set<number>()
  const reset = new Set<number>()
  const answered = new Set<number>()
  const used = new Map<number, number>()
  let acknowledged = 0
  let openBlock = 0
  let farewell = -1
  let lastStream = 0x7fff_ffff
  for (const [index, { type, flags, stream, payload }] of frames.entries()) {
    const fault = (text: string) => faults.push(`frame ${index}, type ${type} of ${stream}: ${text}`)
    if (index === 0 && (type !== SETTINGS || flags !== 0)) fault('SETTINGS come first (§3.4)')
    if (payload.length > allowed.frameBytes) fault(`${payload.length} bytes (§4.2)`)
    if ((type === CONTINUATION ? stream : 0) !== openBlock) fault('in the middle of a field block (§4.3)')
    const isOfStream = type === DATA || type === HEADERS || type === CONTINUATION || type === RST_STREAM
    if (isOfStream && !allowed.opened.has(stream)) fault('of an idle stream (§5.1)')
    if ((isOfStream || type === WINDOW_UPDATE) && reset.has(stream)) fault('behind our reset (§5.1)')
    if (isOfStream && type !== RST_STREAM && type !== CONTINUATION && over.has(stream))
      fault('behind the end (§5.1)')
    switch (type) {
      case DATA: {
        if (!answered.has(stream)) fault('before a head (§8.1)')
        for (const window of [0, stream]) {
          const total = (used.get(window) ?? 0) + payload.length
          used.set(window, total)
          const most = (window === 0 ? 65_535 : allowed.initialWindow) + (allowed.granted.get(window) ?? 0)
          if (total > most) fault(`${total} bytes of a window of ${most} (§6.9)`)
        }
        if ((flags & END_STREAM) !== 0) over.add(stream)
        break
      }
      case HEADERS:
        answered.add(stream)
        if ((flags & END_STREAM) !== 0) over.add(stream)
        openBlock = (flags & END_HEADERS) === 0 ? stream : 0
        break
      case CONTINUATION:
        if ((flags & END_HEADERS) !== 0) openBlock = 0
        break
      case RST_STREAM:
        if (payload.length !== 4) fault('length (§6.4)')
        reset.add(stream)
        break
      case SETTINGS:
        if (stream !== 0 || payload.length % 6 !== 0) fault('form (§6.5)')
        if ((flags & ACK) !== 0 && ++acknowledged > allowed.settingsSent)
          fault('an acknowledgement too many (§6.5.3)')
        break
      case PING:
        if (stream !== 0 || payload.length !== 8) fault('form (§6.7)')
        break
      case GOAWAY: {
        if (stream !== 0 || payload.length < 8) fault('form (§6.8)')
        const last = payload.readUInt32BE(0)
        if (last > lastStream) fault('a last stream that rises (§6.8)')
        lastStream = last
        if (farewell > 0) fault('behind a GOAWAY with an error (§5.4.1)')
        farewell = payload.readUInt32BE(4)
        break
      }
      case WINDOW_UPDATE: {
        const increment = payload.readUInt32BE(0)
        if (payload.length !== 4 || increment === 0 || increment > 0x7fff_ffff)
          fault(`of ${increment} (§6.9)`)
        if (stream !== 0 && !allowed.opened.has(stream)) fault('of an idle stream (§5.1)')
        break
      }
      default:
        fault('a type that a server does not send here')
    }
  }
  return faults
}

const END_STREAM = 1
const ACK = 1
const END_HEADERS = 4
