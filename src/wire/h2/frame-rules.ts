import {
  ACK,
  CONTINUATION,
  DATA,
  ENABLE_CONNECT_PROTOCOL,
  ENABLE_PUSH,
  FLOW_CONTROL_ERROR,
  FRAME_BYTES_MAX,
  FRAME_SIZE_ERROR,
  GOAWAY,
  HEADERS,
  INITIAL_WINDOW_SIZE,
  MAX_FRAME_SIZE,
  NO_RFC7540_PRIORITIES,
  PING,
  PRIORITY,
  PRIORITY_UPDATE,
  PROTOCOL_ERROR,
  PUSH_PROMISE,
  RST_STREAM,
  SETTINGS,
  U31_MAX,
  u32At,
  WINDOW_UPDATE,
} from './frame.ts'

export interface FrameHead {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly length: number
}

/** The error that a frame is by its header alone, whatever came before it. 0 if it has no error. */
export function frameError({ type, flags, stream, length }: FrameHead): number {
  if (length > FRAME_BYTES_MAX) return FRAME_SIZE_ERROR // §4.2
  switch (type) {
    case DATA:
    case HEADERS:
    case CONTINUATION:
      return (stream & 1) === 0 ? PROTOCOL_ERROR : 0 // §5.1.1: a client's streams are odd
    case PRIORITY:
      return stream === 0 ? PROTOCOL_ERROR : sized(length === 5)
    case RST_STREAM:
      return stream === 0 ? PROTOCOL_ERROR : sized(length === 4)
    case SETTINGS:
      if (stream !== 0) return PROTOCOL_ERROR
      return sized(flags & ACK ? length === 0 : length % 6 === 0)
    case PUSH_PROMISE:
      return PROTOCOL_ERROR // §8.4: only a server pushes, and we turn that off
    case PING:
      return stream !== 0 ? PROTOCOL_ERROR : sized(length === 8)
    case GOAWAY:
      return stream !== 0 ? PROTOCOL_ERROR : sized(length >= 8)
    case WINDOW_UPDATE:
      return sized(length === 4)
    case PRIORITY_UPDATE:
      return stream !== 0 ? PROTOCOL_ERROR : sized(length >= 4)
    default:
      return 0 // §4.1: unknown types are ignored
  }
}

/**
 * Passes on each setting of a payload. Returns the error of the first invalid one, or the
 * first result of `use` that is not 0 (§6.5.2).
 */
export function readSettings(payload: Uint8Array, use: (id: number, value: number) => number): number {
  for (let at = 0; at < payload.length; at += 6) {
    const id = (payload[at]! << 8) | payload[at + 1]!
    const value = u32At(payload, at + 2)
    const code = settingError(id, value) || use(id, value)
    if (code !== 0) return code
  }
  return 0
}

function settingError(id: number, value: number): number {
  switch (id) {
    case ENABLE_PUSH:
    case ENABLE_CONNECT_PROTOCOL:
    case NO_RFC7540_PRIORITIES:
      return value > 1 ? PROTOCOL_ERROR : 0
    case INITIAL_WINDOW_SIZE:
      return value > U31_MAX ? FLOW_CONTROL_ERROR : 0
    case MAX_FRAME_SIZE:
      return value < FRAME_BYTES_MAX || value > FRAME_SIZE_MAX ? PROTOCOL_ERROR : 0
    default:
      return 0
  }
}

function sized(isRight: boolean): number {
  return isRight ? 0 : FRAME_SIZE_ERROR
}

/** §6.5.2: 2^24 - 1. */
const FRAME_SIZE_MAX = 16_777_215
