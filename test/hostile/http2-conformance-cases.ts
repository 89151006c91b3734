import {
  data,
  fieldBlock,
  frame,
  getRequest,
  headers,
  PREFACE,
  priority,
  settings,
  windowUpdate,
} from '../proxy/http2-frames.ts'
import {
  CANCEL,
  COMPRESSION_ERROR,
  CONTINUATION,
  DATA,
  FLOW_CONTROL_ERROR,
  FRAME_SIZE_ERROR,
  GOAWAY,
  HEADERS,
  INTERNAL_ERROR,
  NO_ERROR,
  PING,
  PRIORITY,
  PROTOCOL_ERROR,
  PUSH_PROMISE,
  REFUSED_STREAM,
  RST_STREAM,
  SETTINGS,
  STREAM_CLOSED,
  WINDOW_UPDATE,
} from './http2-peer.ts'

/** What a client sends, and what it has to get for it: the subjects are those of h2spec's list, the words are ours. */
export interface Case {
  readonly section: string
  readonly title: string
  /** Bytes, or the stream whose answer is waited for. Preface and SETTINGS come first unless it is `bare`. */
  readonly steps: readonly (Buffer | number)[]
  readonly gets: Outcome
  readonly isBare: boolean
  /** Where nghttp2 does something else than h2spec looks for: why that is allowed, or what it comes to. */
  readonly instead: string | null
}

export type Outcome =
  /** The connection ends; with a GOAWAY of one of these codes, or without one if the list is empty. */
  | { readonly kind: 'ended'; readonly codes: readonly number[] }
  /** One stream is reset, and the connection goes on. */
  | { readonly kind: 'reset'; readonly stream: number; readonly codes: readonly number[] }
  /** These streams are answered with 200 to their end, and the connection goes on. */
  | { readonly kind: 'served'; readonly streams: readonly number[] }
  /** This stream is answered with a status of our own, and the connection goes on. */
  | { readonly kind: 'refused'; readonly stream: number; readonly status: number }
  /** Nothing comes of it: no reset, no end. */
  | { readonly kind: 'ignored' }

/** RFC 9113 §5.4.2. */
const CONNECTION_TOO = 'An endpoint may make any error of a stream one of the connection'
const LEFT_OUT =
  'A MUST of §8.2.1 is to refuse the request. Behind the first one of a connection, Node (24.21) has nghttp2 leave out the field, and no sign of it is left: the app never sees it'

type Row = readonly [title: string, steps: readonly (Buffer | number)[], gets: Outcome, instead?: string]

const ended = (...codes: number[]): Outcome => ({ kind: 'ended', codes })
const reset = (stream: number, ...codes: number[]): Outcome => ({ kind: 'reset', stream, codes })
const served = (...streams: number[]): Outcome => ({ kind: 'served', streams })
const refused = (stream: number, status: number): Outcome => ({ kind: 'refused', stream, status })
const ignored: Outcome = { kind: 'ignored' }

const [END_STREAM, ACK, END_HEADERS, PADDED, HAS_PRIORITY] = [1, 1, 4, 8, 0x20]
const block = fieldBlock(getRequest())
const get = (stream: number, ...more: string[]) => headers(stream, getRequest({}, ...more))
/** Its answer never comes. */
const hold = (stream: number) => headers(stream, getRequest({ ':path': '/hold' }))
const post = (stream: number, ...more: string[]) =>
  headers(stream, getRequest({ ':method': 'POST' }, ...more), { hasEnded: false })
const holdPost = (stream: number) =>
  headers(stream, getRequest({ ':method': 'POST', ':path': '/hold' }), { hasEnded: false })
const open = (stream: number, payload = block) => frame(HEADERS, END_STREAM, stream, payload)
const more = (stream: number, payload: Uint8Array, isLast = true) =>
  frame(CONTINUATION, isLast ? END_HEADERS : 0, stream, payload)
const rst = (stream: number, code: number = CANCEL) => frame(RST_STREAM, 0, stream, word(code))
const ping = (flags = 0, stream = 0, length = 8) => frame(PING, flags, stream, Buffer.alloc(length, 7))
const goaway = (code: number, stream = 0) =>
  frame(GOAWAY, 0, stream, Buffer.concat([word(0), word(code), Buffer.from('bye')]))
/** A GET of these bytes behind the method, scheme and path of the static table (RFC 7541, Appendix A). */
const packed = (hex: string, stream = 1) =>
  frame(HEADERS, END_STREAM | END_HEADERS, stream, Buffer.from(`828784${hex}`, 'hex'))
/** A literal with indexing whose name is that of the first entry: `a`. */
const authority = '410161'
/** `abc: x` behind the byte that says how it is indexed. */
const newName = '036162630178'
const newHuffmanName = '8825a849e95ba97d7f8925a849e95bb8e8b4bf'
/** The same with a change of the table's size in front. */
const sized = (hex: string, rest: string) =>
  frame(HEADERS, END_STREAM | END_HEADERS, 1, Buffer.from(`${hex}828784${rest}`, 'hex'))
const BARE = new Set<Buffer | number>()
const third = Math.floor(block.length / 3)
const half = Math.floor(block.length / 2)
const MAX_WINDOW = 0x7fff_ffff

/** Fields that nghttp2 leaves out. */
const MALFORMED: readonly (readonly [title: string, name: string, value: string])[] = [
  ['a name with a blank', 'x smuggled', 'a'],
  ['a name with a colon', 'x:smuggled', 'a'],
  ['a name with a line break', 'x\r\nsmuggled', 'a'],
  ['a name beyond ASCII', 'x\xffsmuggled', 'a'],
  ['an empty name', '', 'smuggled'],
  ['a value with a line break', 'x-a', 'b\r\nsmuggled: d'],
  ['a value with a line feed', 'x-a', 'b\nsmuggled'],
  ['a value with NUL', 'x-a', 'b\0smuggled'],
  ['a value with DEL', 'x-a', 'b\x7fsmuggled'],
  ['a cookie with NUL', 'cookie', 'smuggled=\0'],
]

const TABLE: Readonly<Record<string, readonly Row[]>> = {
  'RFC 9113 §3.4': [
    ['a preface is answered with SETTINGS before all else', [], ignored],
    [
      'another preface',
      [bare('INVALID CONNECTION PREFACE\r\n\r\n'), Buffer.alloc(9)],
      ended(),
      'It offered h2 and speaks something else: that can only be cut off',
    ],
    [
      'a preface that breaks off in a wrong byte',
      [bare('PRI * HTTP/2.0\r\n\r\nSM\r\n\rX'), settings()],
      ended(INTERNAL_ERROR),
      'the code that Node has for it',
    ],
    ['HTTP/1.1 where h2 was agreed on', [bare('GET / HTTP/1.1\r\nHost: a\r\n\r\n')], ended()],
    ['a preface, and another frame than SETTINGS', [bare(PREFACE), ping()], ended(PROTOCOL_ERROR)],
    ['a preface twice', [PREFACE], ended(FRAME_SIZE_ERROR, PROTOCOL_ERROR)],
  ],
  'RFC 9113 §4.1': [
    ['a frame of an unknown type', [frame(22, 0, 0, Buffer.alloc(8)), get(1)], served(1)],
    ['an unknown flag', [frame(PING, 0x16, 0, Buffer.alloc(8)), get(1)], served(1)],
    ['the reserved bit', [frame(PING, 0, 0x8000_0000, Buffer.alloc(8)), get(1)], served(1)],
  ],
  'RFC 9113 §4.2': [
    ['DATA of 16,384 bytes', [post(1), data(1, Buffer.alloc(16_384))], served(1)],
    ['DATA of 16,385', [post(1), data(1, Buffer.alloc(16_385))], ended(FRAME_SIZE_ERROR)],
    [
      'HEADERS of 16,385',
      [frame(HEADERS, END_STREAM | END_HEADERS, 1, Buffer.alloc(16_385))],
      ended(FRAME_SIZE_ERROR),
    ],
    ['SETTINGS of 16,386', [frame(SETTINGS, 0, 0, Buffer.alloc(16_386))], ended(FRAME_SIZE_ERROR)],
    ['the longest length there is', [Buffer.from('ffffff000000000001', 'hex')], ended(FRAME_SIZE_ERROR)],
  ],
  'RFC 9113 §4.3': [
    [
      'a field block that cannot be read',
      [frame(HEADERS, END_STREAM | END_HEADERS, 1, Buffer.from('ffffffffff', 'hex'))],
      ended(COMPRESSION_ERROR),
    ],
    [
      'PRIORITY in a field block',
      [open(1, block.subarray(0, half)), priority(1, 0, 1), more(1, block.subarray(half))],
      ended(PROTOCOL_ERROR),
    ],
    [
      'HEADERS of another stream in a field block',
      [open(1, block.subarray(0, half)), get(3)],
      ended(PROTOCOL_ERROR),
    ],
    [
      'a field block that ends in the middle of a field',
      [frame(HEADERS, END_STREAM | END_HEADERS, 1, block.subarray(0, -1))],
      ended(COMPRESSION_ERROR),
    ],
  ],
  'RFC 9113 §5.1, idle': [
    ['DATA', [data(1, 'x')], ended(PROTOCOL_ERROR, STREAM_CLOSED)],
    ['RST_STREAM', [rst(1)], ended(PROTOCOL_ERROR)],
    ['WINDOW_UPDATE', [windowUpdate(100, 1)], ended(PROTOCOL_ERROR)],
    ['CONTINUATION', [more(1, block)], ended(PROTOCOL_ERROR)],
    ['PRIORITY', [priority(1, 0, 255), get(1)], served(1)],
  ],
  'RFC 9113 §5.1, half-closed (remote)': [
    ['DATA', [hold(1), data(1, 'x')], ended(STREAM_CLOSED)],
    ['HEADERS', [hold(1), hold(1)], ended(STREAM_CLOSED)],
    ['CONTINUATION', [hold(1), more(1, block)], ended(STREAM_CLOSED, PROTOCOL_ERROR)],
    ['WINDOW_UPDATE', [get(1), windowUpdate(100, 1)], served(1)],
    ['PRIORITY', [get(1), priority(1, 0, 255)], served(1)],
    ['RST_STREAM', [hold(1), rst(1), get(3)], served(3)],
  ],
  'RFC 9113 §5.1, closed': [
    [
      'DATA behind its RST_STREAM',
      [holdPost(1), rst(1), data(1, 'x'), get(3)],
      served(3),
      'MAY be an error of the connection; nghttp2 leaves it unread, and counts it against the window',
    ],
    [
      'HEADERS behind its RST_STREAM',
      [hold(1), rst(1), hold(1), get(3)],
      served(3),
      'MAY be an error of the connection; nghttp2 decodes the block and leaves it',
    ],
    [
      'CONTINUATION behind its RST_STREAM',
      [hold(1), rst(1), more(1, block)],
      ended(STREAM_CLOSED, PROTOCOL_ERROR),
    ],
    ['DATA behind the answer', [get(1), 1, data(1, 'x'), get(3)], served(3), 'the same'],
    ['HEADERS behind the answer', [get(1), 1, hold(1), get(3)], served(3), 'the same'],
    ['CONTINUATION behind the answer', [get(1), 1, more(1, block)], ended(STREAM_CLOSED, PROTOCOL_ERROR)],
    ['PRIORITY behind the answer', [get(1), 1, priority(1, 0, 255), get(3)], served(3)],
    ['WINDOW_UPDATE behind the answer', [get(1), 1, windowUpdate(5, 1), get(3)], served(3)],
    ['RST_STREAM behind the answer', [get(1), 1, rst(1), get(3)], served(3)],
  ],
  'RFC 9113 §5.1.1': [
    ['an even stream', [get(2)], ended(PROTOCOL_ERROR)],
    [
      'a lower stream than the one before',
      [get(5), get(3)],
      served(5),
      'nghttp2 takes 3 for a stream that is closed, as one below 5 is, and leaves it: a MUST of the RFC, but nothing is served that should not be',
    ],
    ['the last stream there is', [get(MAX_WINDOW)], served(MAX_WINDOW)],
  ],
  'RFC 9113 §5.1.2': [
    [
      'more streams than are allowed',
      [hold(1), hold(3), hold(5), hold(7), hold(9)],
      reset(9, REFUSED_STREAM, PROTOCOL_ERROR),
    ],
  ],
  'RFC 9113 §5.3': [
    [
      'HEADERS that depend on themselves',
      [frame(HEADERS, 0x25, 1, Buffer.concat([word(1), Buffer.of(255), block]))],
      ended(PROTOCOL_ERROR),
      CONNECTION_TOO,
    ],
    [
      'PRIORITY that depends on itself',
      [priority(1, 1, 255), get(1)],
      served(1),
      'Priorities of RFC 7540 are deprecated: they are read over',
    ],
    ['priority 1', [priority(1, 0, 0), get(1)], served(1)],
    ['priority 256', [priority(1, 0, 255), get(1)], served(1)],
    ['a dependency', [priority(1, 0, 255), priority(3, 1, 255), get(1)], served(1)],
    ['an exclusive one', [priority(1, 0, 255, true), get(1)], served(1)],
    ['PRIORITY of an idle stream, and HEADERS of a lower one', [priority(5, 0, 255), get(3)], served(3)],
  ],
  'RFC 9113 §5.4.1': [
    ['an error is answered with GOAWAY, and the end of the connection', [ping(0, 3)], ended(PROTOCOL_ERROR)],
    ['what was served before the error is named', [get(1), 1, ping(0, 3)], ended(PROTOCOL_ERROR)],
  ],
  'RFC 9113 §5.5': [
    ['a frame of an extension', [frame(0xff, 0xff, 0, Buffer.alloc(100)), get(1)], served(1)],
    [
      'a frame of an extension in a field block',
      [open(1, block.subarray(0, half)), frame(0xff, 0, 0, Buffer.alloc(8)), more(1, block.subarray(half))],
      ended(PROTOCOL_ERROR),
    ],
    [
      'frames that only servers send: ALTSVC, ORIGIN',
      [frame(10, 0, 0, Buffer.from('000161', 'hex')), frame(12, 0, 0), get(1)],
      served(1),
    ],
    ['PRIORITY_UPDATE', [frame(16, 0, 0, Buffer.concat([word(1), Buffer.from('u=1')])), get(1)], served(1)],
  ],
  'RFC 9113 §6.1': [
    ['DATA', [post(1), data(1, 'test')], served(1)],
    ['DATA in several frames', [post(1), data(1, 'te', false), data(1, 'st')], served(1)],
    ['DATA with padding', [post(1), frame(DATA, END_STREAM | PADDED, 1, padded('test', 6))], served(1)],
    [
      'DATA of nothing but padding',
      [post(1), frame(DATA, END_STREAM | PADDED, 1, padded('', 255))],
      served(1),
    ],
    ['DATA of stream 0', [data(0, 'test')], ended(PROTOCOL_ERROR)],
    ['DATA of a stream that is closed on that side', [hold(1), data(1, 'test')], ended(STREAM_CLOSED)],
    [
      'more padding than there is frame',
      [post(1), frame(DATA, END_STREAM | PADDED, 1, Buffer.from('ff74657374', 'hex'))],
      ended(PROTOCOL_ERROR),
    ],
    [
      'padding without its length',
      [post(1), frame(DATA, END_STREAM | PADDED, 1)],
      ended(PROTOCOL_ERROR, FRAME_SIZE_ERROR),
    ],
  ],
  'RFC 9113 §6.2': [
    ['HEADERS', [get(1)], served(1)],
    [
      'HEADERS with padding',
      [frame(HEADERS, END_STREAM | END_HEADERS | PADDED, 1, padded(block, 6))],
      served(1),
    ],
    [
      'HEADERS with a priority',
      [
        frame(
          HEADERS,
          END_STREAM | END_HEADERS | HAS_PRIORITY,
          1,
          Buffer.concat([word(0), Buffer.of(255), block]),
        ),
      ],
      served(1),
    ],
    [
      'HEADERS that are not whole, and PRIORITY',
      [open(1, block), priority(1, 0, 255)],
      ended(PROTOCOL_ERROR),
    ],
    [
      'HEADERS that are not whole, and those of another stream',
      [open(1, block), get(3)],
      ended(PROTOCOL_ERROR),
    ],
    ['HEADERS of stream 0', [get(0)], ended(PROTOCOL_ERROR)],
    [
      'more padding than there is frame',
      [frame(HEADERS, END_STREAM | END_HEADERS | PADDED, 1, Buffer.concat([Buffer.of(255), block]))],
      ended(PROTOCOL_ERROR),
    ],
    [
      'a priority that is cut short',
      [frame(HEADERS, END_STREAM | END_HEADERS | HAS_PRIORITY, 1, word(0))],
      ended(FRAME_SIZE_ERROR, PROTOCOL_ERROR),
    ],
  ],
  'RFC 9113 §6.3': [
    [
      'PRIORITY of stream 0',
      [priority(0, 1, 255), get(1)],
      served(1),
      'Deprecated with all of PRIORITY, and read over',
    ],
    [
      'PRIORITY of another length',
      [frame(PRIORITY, 0, 1, Buffer.alloc(4))],
      ended(FRAME_SIZE_ERROR),
      CONNECTION_TOO,
    ],
  ],
  'RFC 9113 §6.4': [
    ['RST_STREAM', [hold(1), rst(1), get(3)], served(3)],
    ['RST_STREAM of stream 0', [rst(0)], ended(PROTOCOL_ERROR)],
    ['RST_STREAM of an idle stream', [rst(1)], ended(PROTOCOL_ERROR)],
    [
      'RST_STREAM of another length',
      [hold(1), frame(RST_STREAM, 0, 1, Buffer.alloc(3))],
      ended(FRAME_SIZE_ERROR),
    ],
  ],
  'RFC 9113 §6.5': [
    ['SETTINGS are acknowledged', [settings([3, 100])], ignored],
    [
      'an acknowledgement with a payload',
      [frame(SETTINGS, ACK, 0, Buffer.alloc(6))],
      ended(FRAME_SIZE_ERROR),
    ],
    ['SETTINGS of a stream', [frame(SETTINGS, 0, 1, Buffer.alloc(6))], ended(PROTOCOL_ERROR)],
    ['SETTINGS of another length', [frame(SETTINGS, 0, 0, Buffer.alloc(3))], ended(FRAME_SIZE_ERROR)],
  ],
  'RFC 9113 §6.5.2': [
    ['ENABLE_PUSH of 2', [settings([2, 2])], ended(PROTOCOL_ERROR)],
    ['a window above the highest', [settings([4, 0x8000_0000])], ended(FLOW_CONTROL_ERROR)],
    ['frames below 16,384', [settings([5, 16_383])], ended(PROTOCOL_ERROR)],
    ['frames above 2^24-1', [settings([5, 0x100_0000])], ended(PROTOCOL_ERROR)],
    ['an unknown setting', [settings([0xff, 1]), get(1)], served(1)],
    ['ENABLE_CONNECT_PROTOCOL of 2', [settings([8, 2])], ended(PROTOCOL_ERROR)],
  ],
  'RFC 9113 §6.5.3': [
    [
      'a window named twice in one frame: the last counts',
      [settings([4, 0], [4, 65_535]), get(1)],
      served(1),
    ],
    ['SETTINGS between requests', [get(1), settings([1, 0]), get(3)], served(1, 3)],
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
      ended(INTERNAL_ERROR),
      'Node ends the session: an answer to a PING that was never sent',
    ],
    ['PING of a stream', [ping(0, 1)], ended(PROTOCOL_ERROR)],
    ['PING of another length', [ping(0, 0, 6)], ended(FRAME_SIZE_ERROR)],
  ],
  'RFC 9113 §6.8': [
    ['GOAWAY', [get(1), 1, goaway(NO_ERROR)], ended(NO_ERROR)],
    ['GOAWAY of a stream', [goaway(NO_ERROR, 1)], ended(PROTOCOL_ERROR)],
    ['GOAWAY of another length', [frame(GOAWAY, 0, 0, Buffer.alloc(7))], ended(FRAME_SIZE_ERROR)],
  ],
  'RFC 9113 §6.9': [
    ['WINDOW_UPDATE', [windowUpdate(1), get(1)], served(1)],
    ['WINDOW_UPDATE of a stream', [get(1), windowUpdate(1, 1)], served(1)],
    ['WINDOW_UPDATE of 0', [windowUpdate(0)], ended(PROTOCOL_ERROR)],
    ['WINDOW_UPDATE of 0, of a stream', [hold(1), windowUpdate(0, 1)], ended(PROTOCOL_ERROR), CONNECTION_TOO],
    [
      'WINDOW_UPDATE of another length',
      [frame(WINDOW_UPDATE, 0, 0, Buffer.alloc(3))],
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
    [
      'a window of a stream above 2^31-1',
      [hold(1), windowUpdate(MAX_WINDOW, 1), windowUpdate(MAX_WINDOW, 1)],
      ended(FLOW_CONTROL_ERROR),
      CONNECTION_TOO,
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
  ],
  'RFC 9113 §6.10': [
    ['CONTINUATION', [open(1, block.subarray(0, half)), more(1, block.subarray(half))], served(1)],
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
    [
      'another frame than CONTINUATION',
      [open(1, block.subarray(0, half)), more(1, block.subarray(half), false), data(1, 'x')],
      ended(PROTOCOL_ERROR),
    ],
    [
      'CONTINUATION of stream 0',
      [open(1, block.subarray(0, half)), more(0, block.subarray(half))],
      ended(PROTOCOL_ERROR),
    ],
    ['CONTINUATION behind whole HEADERS', [hold(1), more(1, block)], ended(PROTOCOL_ERROR)],
    [
      'CONTINUATION behind a last CONTINUATION',
      [open(1, block.subarray(0, half)), more(1, block.subarray(half)), more(1, block)],
      ended(PROTOCOL_ERROR),
    ],
    ['CONTINUATION behind DATA', [holdPost(1), data(1, 'x', false), more(1, block)], ended(PROTOCOL_ERROR)],
    [
      'CONTINUATION of another stream',
      [open(1, block.subarray(0, half)), more(3, block.subarray(half))],
      ended(PROTOCOL_ERROR),
    ],
  ],
  'RFC 9113 §7': [
    ['GOAWAY of an unknown code', [get(1), 1, goaway(0xff)], ended(NO_ERROR)],
    ['RST_STREAM of an unknown code', [hold(1), rst(1, 0xff), get(3)], served(3)],
  ],
  'RFC 9113 §8.1': [
    ['GET', [get(1)], served(1)],
    ['HEAD', [headers(1, getRequest({ ':method': 'HEAD' }))], served(1)],
    ['POST', [post(1), data(1, 'test')], served(1)],
    ['POST with trailers', [post(1), data(1, 'test', false), headers(1, ['x-sum', '7'])], served(1)],
    [
      'second HEADERS that end nothing',
      [holdPost(1), headers(1, ['x-sum', '7'], { hasEnded: false })],
      reset(1, PROTOCOL_ERROR),
    ],
    ['trailers, and DATA', [holdPost(1), headers(1, ['x-sum', '7']), data(1, 'x')], ended(STREAM_CLOSED)],
  ],
  'RFC 9113 §8.2': [
    ['a name in upper case', [get(1, 'X-Up', 'a')], reset(1, PROTOCOL_ERROR)],
    ...MALFORMED.flatMap(([title, name, value]): Row[] => [
      [`${title}, in the first request`, [first(name, value)], refused(1, 400)],
      [`${title}, later`, [get(1), 1, get(3, name, value)], served(1, 3), LEFT_OUT],
    ]),
    ...[' smuggled', 'smuggled ', '\tsmuggled', 'smuggled\t', ' ', ' smuggled '].flatMap((value): Row[] => [
      [`the value “${value}”, in the first request`, [first('x-a', value)], refused(1, 400)],
      [`the value “${value}”, later`, [get(1), 1, get(3, 'x-a', value)], refused(3, 400)],
      [
        `the value “${value}” in trailers`,
        [holdPost(1), data(1, 'test', false), headers(1, ['x-a', value])],
        refused(1, 400),
      ],
    ]),
    [
      'a malformed field in a block of several frames, in the first request',
      [bare(Buffer.concat([PREFACE, settings(), ...inFrames(getRequest({}, 'x smuggled', 'a'))]))],
      refused(1, 400),
    ],
    [
      'a malformed field in a block with padding and a priority, in the first request',
      [bare(Buffer.concat([PREFACE, settings(), dressed(getRequest({}, 'x smuggled', 'a'))]))],
      refused(1, 400),
    ],
    [
      'a malformed field behind a request that is reset',
      [bare(Buffer.concat([PREFACE, settings(), get(1, 'X-Up', 'a'), get(3)]))],
      served(3),
    ],
  ],
  'RFC 9113 §8.2.2': [
    ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'].map(
      (name): Row => [name, [get(1, name, 'close')], reset(1, PROTOCOL_ERROR)],
    ),
    ['te of anything but trailers', [get(1, 'te', 'trailers, deflate')], reset(1, PROTOCOL_ERROR)],
    ['te of trailers', [get(1, 'te', 'trailers')], served(1)],
  ],
  'RFC 9113 §8.3': [
    ['an unknown pseudo-header', [get(1, ':test', 'x')], reset(1, PROTOCOL_ERROR)],
    ['one of an answer', [headers(1, [':status', '200', ...getRequest()])], reset(1, PROTOCOL_ERROR)],
    ['one in trailers', [holdPost(1), headers(1, [':method', 'GET'])], reset(1, PROTOCOL_ERROR)],
    [
      'one behind a field',
      [headers(1, getRequest({ ':path': null }, 'x-a', 'b', ':path', '/'))],
      reset(1, PROTOCOL_ERROR),
    ],
  ],
  'RFC 9113 §8.3.1': [
    ['an empty path', [headers(1, getRequest({ ':path': '' }))], reset(1, PROTOCOL_ERROR)],
    ...[':method', ':scheme', ':path'].flatMap((name): Row[] => [
      [`no ${name}`, [headers(1, getRequest({ [name]: null }))], reset(1, PROTOCOL_ERROR)],
      [
        `${name} twice`,
        [headers(1, [...getRequest(), name, getRequest()[getRequest().indexOf(name) + 1]!])],
        reset(1, PROTOCOL_ERROR),
      ],
    ]),
    [':authority twice', [headers(1, [...getRequest(), ':authority', 'a'])], reset(1, PROTOCOL_ERROR)],
  ],
  'RFC 9113 §8.1.1': [
    [
      'less DATA than its length',
      [post(1, 'content-length', '5'), data(1, 'test')],
      reset(1, PROTOCOL_ERROR),
    ],
    [
      'more DATA than its length',
      [post(1, 'content-length', '1'), data(1, 'test')],
      ended(INTERNAL_ERROR),
      CONNECTION_TOO,
    ],
    [
      'less DATA than its length, in several frames',
      [post(1, 'content-length', '9'), data(1, 'test', false), data(1, 'test')],
      reset(1, PROTOCOL_ERROR),
    ],
    ['a length, and no DATA', [get(1, 'content-length', '5')], reset(1, PROTOCOL_ERROR)],
  ],
  'RFC 7541 §2.3.3': [
    ['an index beyond the tables', [packed('c6')], ended(COMPRESSION_ERROR)],
    ['a literal whose name has such an index', [packed('7f0f0161')], ended(COMPRESSION_ERROR)],
  ],
  'RFC 7541 §4.2': [
    ['a change of the size at the end of a block', [packed(`${authority}20`)], ended(COMPRESSION_ERROR)],
  ],
  'RFC 7541 §5.1': [
    ['an integer without an end', [packed(`7f${'ff'.repeat(20)}`)], ended(COMPRESSION_ERROR)],
    ['an integer above 2^32', [packed('7fffffffffff7f0161')], ended(COMPRESSION_ERROR)],
  ],
  'RFC 7541 §5.2': [
    ['padding of more than 7 bits', [packed('41821fff')], ended(COMPRESSION_ERROR)],
    ['padding with zeros', [packed('418118')], ended(COMPRESSION_ERROR)],
    ['the symbol of the end', [packed('4184ffffffff')], ended(COMPRESSION_ERROR)],
    ['a string longer than the block', [packed('417f8001')], ended(COMPRESSION_ERROR)],
  ],
  'RFC 7541 §6': [
    ['index 0', [packed('80')], ended(COMPRESSION_ERROR)],
    ['fields that are indexed', [packed(authority)], served(1)],
    ['a literal with indexing, its name indexed', [packed(authority), packed('be', 3)], served(1, 3)],
    ['the same with Huffman coding', [packed('418cf1e3c2e5f23a6ba0ab90f4ff')], served(1)],
    ['a literal with indexing and a new name', [packed(`${authority}40${newName}`)], served(1)],
    ['the same with Huffman coding', [packed(`${authority}40${newHuffmanName}`)], served(1)],
    ['a literal without indexing, its name indexed', [packed('010161')], served(1)],
    ['the same with Huffman coding', [packed('018cf1e3c2e5f23a6ba0ab90f4ff')], served(1)],
    ['a literal without indexing and a new name', [packed(`${authority}00${newName}`)], served(1)],
    ['the same with Huffman coding', [packed(`${authority}00${newHuffmanName}`)], served(1)],
    ['a literal never to be indexed, its name indexed', [packed('110161')], served(1)],
    ['the same with Huffman coding', [packed('118cf1e3c2e5f23a6ba0ab90f4ff')], served(1)],
    ['a literal never to be indexed and a new name', [packed(`${authority}10${newName}`)], served(1)],
    ['the same with Huffman coding', [packed(`${authority}10${newHuffmanName}`)], served(1)],
  ],
  'RFC 7541 §6.3': [
    ['a change of the size', [sized('30', authority)], served(1)],
    ['two of them', [sized('203fe11f', authority)], served(1)],
    ['a size above what was allowed', [sized('3fffffff7f', authority)], ended(COMPRESSION_ERROR)],
    [
      'an entry that is no longer there',
      [packed(authority), frame(HEADERS, END_STREAM | END_HEADERS, 3, Buffer.from('20828784be', 'hex'))],
      ended(COMPRESSION_ERROR),
    ],
  ],
}

export const CASES: readonly Case[] = Object.entries(TABLE).flatMap(([section, rows]) =>
  rows.map(([title, steps, gets, instead = null]) => {
    const isBare = steps.some((step) => BARE.has(step))
    return { section, title, steps, gets, isBare, instead }
  }),
)

/** A request that comes with the preface, as the first one of nearly all clients does. */
function first(name: string, value: string): Buffer {
  return bare(Buffer.concat([PREFACE, settings(), get(1, name, value)]))
}

function inFrames(fields: readonly string[]): Buffer[] {
  const bytes = fieldBlock(fields)
  return [open(1, bytes.subarray(0, 5)), more(1, bytes.subarray(5, 9), false), more(1, bytes.subarray(9))]
}

function dressed(fields: readonly string[]): Buffer {
  const payload = padded(Buffer.concat([word(0), Buffer.of(255), fieldBlock(fields)]), 7)
  return frame(HEADERS, END_STREAM | END_HEADERS | HAS_PRIORITY | PADDED, 1, payload)
}

/** What comes in place of preface and SETTINGS. */
function bare(bytes: string | Buffer): Buffer {
  const step = Buffer.from(bytes as string, 'latin1')
  BARE.add(step)
  return step
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function padded(payload: string | Buffer, length: number): Buffer {
  return Buffer.concat([Buffer.of(length), Buffer.from(payload as string, 'latin1'), Buffer.alloc(length)])
}
