import { data, frame, PREFACE, settings, windowUpdate } from '../proxy/http2-frames.ts'
import {
  ACK,
  bare,
  block,
  END_HEADERS,
  END_STREAM,
  ended,
  fault,
  get,
  goaway,
  half,
  HAS_PRIORITY,
  hold,
  holdPost,
  ignored,
  MAX_WINDOW,
  more,
  node,
  open,
  PADDED,
  ping,
  post,
  reset,
  rst,
  served,
  type Table,
  third,
  word,
} from './http2-conformance-case.ts'
import {
  FLOW_CONTROL_ERROR,
  FRAME_SIZE_ERROR,
  GOAWAY,
  HEADERS,
  INTERNAL_ERROR,
  NO_ERROR,
  PROTOCOL_ERROR,
  PUSH_PROMISE,
  SETTINGS,
  WINDOW_UPDATE,
} from './http2-peer.ts'

const ENDS_TOO = 'GOAWAY forbids requests only to the receiver (RFC 9113 §6.8). Node ends the session'
const IN_THE_MIDDLE = [open(1, block.subarray(0, half))]
const PRIORITY_UPDATE = 16
const update = (stream: number, value: string, on = 0) =>
  frame(PRIORITY_UPDATE, 0, on, Buffer.concat([word(stream), Buffer.from(value, 'latin1')]))
const UNKNOWN_TO_NODE = 'Node (24.21) gives nghttp2 no priorities of RFC 9218: an unknown frame'
const CONNECTION_TOO = 'nghttp2 ends the connection (RFC 9113 §5.4: an endpoint may)'

/** RFC 9113 §6.5 to §7 and RFC 9218: settings, flow control, the frames of the connection. */
export const CONTROL_RULES: Table = {
  'RFC 9113 §6.5': [
    ['SETTINGS are acknowledged', [settings([3, 100])], ignored],
    ['SETTINGS of no entries are acknowledged', [settings()], ignored],
    [
      'an acknowledgement with a payload',
      [frame(SETTINGS, ACK, 0, Buffer.alloc(6))],
      ended(FRAME_SIZE_ERROR),
    ],
    [
      'an acknowledgement of nothing',
      [frame(SETTINGS, ACK, 0), frame(SETTINGS, ACK, 0), get(1)],
      ended(PROTOCOL_ERROR),
      node('the same, with a code of its own', ended()),
    ],
    ['SETTINGS of a stream', [frame(SETTINGS, 0, 1, Buffer.alloc(6))], ended(PROTOCOL_ERROR)],
    ['an acknowledgement of a stream', [frame(SETTINGS, ACK, 1)], ended(PROTOCOL_ERROR)],
    ['SETTINGS of 3 bytes', [frame(SETTINGS, 0, 0, Buffer.alloc(3))], ended(FRAME_SIZE_ERROR)],
    ['SETTINGS of 7 bytes', [frame(SETTINGS, 0, 0, Buffer.alloc(7))], ended(FRAME_SIZE_ERROR)],
  ],
  'RFC 9113 §6.5.2': [
    ['ENABLE_PUSH of 2', [settings([2, 2])], ended(PROTOCOL_ERROR)],
    ['ENABLE_PUSH of 0 and of 1', [settings([2, 0]), settings([2, 1]), get(1)], served(1)],
    ['a window above the highest', [settings([4, 0x8000_0000])], ended(FLOW_CONTROL_ERROR)],
    ['the highest window', [settings([4, MAX_WINDOW]), get(1)], served(1)],
    ['frames below 16,384', [settings([5, 16_383])], ended(PROTOCOL_ERROR)],
    ['frames above 2^24-1', [settings([5, 0x100_0000])], ended(PROTOCOL_ERROR)],
    ['frames of 2^24-1', [settings([5, 0xff_ffff]), get(1)], served(1)],
    ['the largest header table', [settings([1, 0xffff_ffff]), get(1), 1, get(3)], served(1, 3)],
    ['no streams of ours', [settings([3, 0]), get(1)], served(1)],
    ['an unknown setting', [settings([0xff, 1]), get(1)], served(1)],
    ['the settings 0 and 65,535', [settings([0, 1], [0xffff, 1]), get(1)], served(1)],
  ],
  'RFC 9113 §6.5.3': [
    [
      'a window named twice in one frame: the last counts',
      [settings([4, 0], [4, 65_535]), get(1)],
      served(1),
    ],
    ['SETTINGS between requests', [get(1), settings([1, 0]), get(3)], served(1, 3)],
  ],
  'RFC 8441 §3': [
    ['ENABLE_CONNECT_PROTOCOL of 0 and of 1', [settings([8, 0]), settings([8, 1]), get(1)], served(1)],
    ['ENABLE_CONNECT_PROTOCOL of 2', [settings([8, 2])], ended(PROTOCOL_ERROR)],
  ],
  'RFC 9113 §6.6, §8.4': [
    [
      'PUSH_PROMISE from a client',
      [hold(1), frame(PUSH_PROMISE, END_HEADERS, 1, Buffer.concat([word(2), block]))],
      ended(PROTOCOL_ERROR),
    ],
  ],
  'RFC 9113 §6.7': [
    ['PING is answered', [ping()], ignored],
    [
      'an acknowledgement of no PING',
      [ping(ACK)],
      ignored,
      node('Node ends the session: an answer to a PING that was never sent', ended(INTERNAL_ERROR)),
    ],
    ['PING of a stream', [ping(0, 1)], ended(PROTOCOL_ERROR)],
    ['PING of 6 bytes', [ping(0, 0, 6)], ended(FRAME_SIZE_ERROR)],
    ['PING of 9 bytes', [ping(0, 0, 9)], ended(FRAME_SIZE_ERROR)],
    ['an acknowledgement of 7 bytes', [ping(ACK, 0, 7)], ended(FRAME_SIZE_ERROR)],
  ],
  'RFC 9113 §6.8': [
    ['GOAWAY', [get(1), 1, goaway(NO_ERROR), get(3)], served(1, 3), node(ENDS_TOO, ended(NO_ERROR))],
    ['GOAWAY before the answer', [get(1), goaway(NO_ERROR)], served(1), node(ENDS_TOO, ended(NO_ERROR))],
    ['GOAWAY of a stream', [goaway(NO_ERROR, 1)], ended(PROTOCOL_ERROR)],
    ['GOAWAY of 7 bytes', [frame(GOAWAY, 0, 0, Buffer.alloc(7))], ended(FRAME_SIZE_ERROR)],
  ],
  'RFC 9113 §6.9': [
    ['WINDOW_UPDATE', [windowUpdate(1), get(1)], served(1)],
    [
      'WINDOW_UPDATE with the reserved bit',
      [frame(WINDOW_UPDATE, 0, 0, word(0x8000_0001)), get(1)],
      served(1),
    ],
    ['WINDOW_UPDATE of a stream', [get(1), windowUpdate(1, 1)], served(1)],
    ['WINDOW_UPDATE of 0', [windowUpdate(0)], ended(PROTOCOL_ERROR)],
    [
      'WINDOW_UPDATE of the reserved bit and 0',
      [frame(WINDOW_UPDATE, 0, 0, word(0x8000_0000))],
      ended(PROTOCOL_ERROR),
    ],
    ['WINDOW_UPDATE of 0 of a stream', [hold(1), windowUpdate(0, 1)], fault(1, PROTOCOL_ERROR)],
    ['WINDOW_UPDATE of 3 bytes', [frame(WINDOW_UPDATE, 0, 0, Buffer.alloc(3))], ended(FRAME_SIZE_ERROR)],
    ['WINDOW_UPDATE of 5 bytes', [frame(WINDOW_UPDATE, 0, 0, Buffer.alloc(5, 1))], ended(FRAME_SIZE_ERROR)],
    [
      'WINDOW_UPDATE of 5 bytes of a stream',
      [hold(1), frame(WINDOW_UPDATE, 0, 1, Buffer.alloc(5, 1))],
      ended(FRAME_SIZE_ERROR),
    ],
  ],
  'RFC 9113 §6.9.1': [
    [
      'a window of 1: a byte at a time',
      [settings([4, 1]), get(1), windowUpdate(1, 1), windowUpdate(100, 1)],
      served(1),
    ],
    [
      'a window of the connection above 2^31-1',
      [windowUpdate(MAX_WINDOW), windowUpdate(MAX_WINDOW)],
      ended(FLOW_CONTROL_ERROR),
    ],
    ['a window of the connection of 2^31-1', [windowUpdate(MAX_WINDOW - 65_535), get(1)], served(1)],
    [
      'a window of a stream above 2^31-1',
      [hold(1), windowUpdate(MAX_WINDOW, 1), windowUpdate(MAX_WINDOW, 1)],
      reset(1, FLOW_CONTROL_ERROR),
      node(CONNECTION_TOO, ended(FLOW_CONTROL_ERROR)),
    ],
    [
      'a window of a stream of 2^31-1',
      [hold(1), windowUpdate(MAX_WINDOW - 65_535, 1), rst(1), get(3)],
      served(3),
    ],
  ],
  'RFC 9113 §6.9.2': [
    ['a window that opens behind the request', [settings([4, 0]), get(1), settings([4, 100])], served(1)],
    ['a window below 0', [settings([4, 3]), get(1), settings([4, 0]), windowUpdate(100, 1)], served(1)],
    [
      'SETTINGS that make a window too large',
      [hold(1), windowUpdate(MAX_WINDOW - 65_535, 1), settings([4, MAX_WINDOW])],
      ended(FLOW_CONTROL_ERROR),
    ],
    [
      'SETTINGS do not change the window of the connection',
      [windowUpdate(MAX_WINDOW - 65_535), settings([4, MAX_WINDOW]), get(1)],
      served(1),
    ],
  ],
  'RFC 9113 §6.10': [
    ['CONTINUATION', [...IN_THE_MIDDLE, more(1, block.subarray(half))], served(1)],
    [
      'CONTINUATION, several',
      [
        open(1, block.subarray(0, third)),
        more(1, block.subarray(third, 2 * third), false),
        more(1, block.subarray(2 * third)),
      ],
      served(1),
    ],
    [
      'CONTINUATION in the middle of a name',
      [open(1, block.subarray(0, 4)), more(1, block.subarray(4, 5), false), more(1, block.subarray(5))],
      served(1),
    ],
    ['an empty CONTINUATION that ends the block', [open(1, block), more(1, Buffer.alloc(0))], served(1)],
    ['empty HEADERS, and CONTINUATION', [open(1, Buffer.alloc(0)), more(1, block)], served(1)],
    [
      'CONTINUATION of trailers',
      [
        post(1),
        data(1, 'x', false),
        frame(HEADERS, END_STREAM, 1, Buffer.of(0, 1)),
        more(1, Buffer.from('b\x01c', 'latin1')),
      ],
      served(1),
    ],
    [
      'CONTINUATION of a request with a body',
      [frame(HEADERS, 0, 1, block.subarray(0, half)), more(1, block.subarray(half)), data(1, 'x')],
      served(1),
    ],
    [
      'another frame than CONTINUATION',
      [...IN_THE_MIDDLE, more(1, block.subarray(half), false), data(1, 'x')],
      ended(PROTOCOL_ERROR),
    ],
    ['CONTINUATION of stream 0', [...IN_THE_MIDDLE, more(0, block.subarray(half))], ended(PROTOCOL_ERROR)],
    ['CONTINUATION behind whole HEADERS', [hold(1), more(1, block)], ended(PROTOCOL_ERROR)],
    [
      'CONTINUATION behind a last CONTINUATION',
      [...IN_THE_MIDDLE, more(1, block.subarray(half)), more(1, block)],
      ended(PROTOCOL_ERROR),
    ],
    ['CONTINUATION behind DATA', [holdPost(1), data(1, 'x', false), more(1, block)], ended(PROTOCOL_ERROR)],
    [
      'CONTINUATION of another stream',
      [...IN_THE_MIDDLE, more(3, block.subarray(half))],
      ended(PROTOCOL_ERROR),
    ],
    [
      'flags of padding and priority on CONTINUATION have no meaning',
      [...IN_THE_MIDDLE, frame(9, END_HEADERS | PADDED | HAS_PRIORITY, 1, block.subarray(half))],
      served(1),
    ],
  ],
  'RFC 9113 §7': [
    [
      'GOAWAY of an unknown code',
      [get(1), 1, goaway(0xff), get(3)],
      served(1, 3),
      node(ENDS_TOO, ended(NO_ERROR)),
    ],
    ['RST_STREAM of an unknown code', [hold(1), rst(1, 0xff), get(3)], served(3)],
  ],
  'RFC 9218 §2.1': [
    ['NO_RFC7540_PRIORITIES', [bare(Buffer.concat([PREFACE, settings([9, 1])])), get(1)], served(1)],
    [
      'NO_RFC7540_PRIORITIES that changes after the first SETTINGS (RFC 9218 §2.1)',
      [settings([9, 1])],
      ended(PROTOCOL_ERROR),
    ],
    [
      'NO_RFC7540_PRIORITIES said again',
      [bare(Buffer.concat([PREFACE, settings([9, 1]), settings([9, 1])])), get(1)],
      served(1),
    ],
    ['NO_RFC7540_PRIORITIES of 2', [settings([9, 2])], ended(PROTOCOL_ERROR)],
  ],
  'RFC 9218 §4, §5': [
    ['a priority', [get(1, 'priority', 'u=1, i')], served(1)],
    ['a priority that cannot be read is left out', [get(1, 'priority', 'u=9;;=, i=?2')], served(1)],
    ['two priorities', [get(1, 'priority', 'u=1', 'priority', 'i')], served(1)],
  ],
  'RFC 9218 §7.1': [
    ['PRIORITY_UPDATE before its stream', [update(1, 'u=1'), get(1)], served(1)],
    ['PRIORITY_UPDATE of a stream', [hold(1), update(1, 'u=7, i'), get(3)], served(3)],
    ['PRIORITY_UPDATE behind the answer', [get(1), 1, update(1, 'u=0'), get(3)], served(3)],
    ['PRIORITY_UPDATE without a value', [update(1, ''), get(1)], served(1)],
    ['PRIORITY_UPDATE that cannot be read', [update(1, 'u=\xff\0;'), get(1)], served(1)],
    [
      'PRIORITY_UPDATE for stream 0',
      [update(0, 'u=1'), get(1)],
      ended(PROTOCOL_ERROR),
      node(UNKNOWN_TO_NODE, served(1)),
    ],
    [
      'PRIORITY_UPDATE on a stream',
      [hold(1), update(1, 'u=1', 1), get(3)],
      ended(PROTOCOL_ERROR),
      node(UNKNOWN_TO_NODE, served(3)),
    ],
    [
      'PRIORITY_UPDATE of 3 bytes',
      [frame(PRIORITY_UPDATE, 0, 0, Buffer.alloc(3)), get(1)],
      ended(FRAME_SIZE_ERROR),
      node(UNKNOWN_TO_NODE, served(1)),
    ],
    [
      'PRIORITY_UPDATE for a push of ours',
      [update(2, 'u=1'), get(1)],
      ended(PROTOCOL_ERROR),
      node(UNKNOWN_TO_NODE, served(1)),
    ],
  ],
}
