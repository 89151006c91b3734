import {
  ACK,
  CONTINUATION,
  DATA,
  FRAME_BYTES_MAX,
  FRAME_SIZE_ERROR,
  GOAWAY,
  HEADERS,
  PING,
  PRIORITY,
  PRIORITY_UPDATE,
  PROTOCOL_ERROR,
  PUSH_PROMISE,
  RST_STREAM,
  SETTINGS,
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
      return PROTOCOL_ERROR // §8.4: only a server pushes
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

function sized(isRight: boolean): number {
  return isRight ? 0 : FRAME_SIZE_ERROR
}
