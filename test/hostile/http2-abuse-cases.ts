import {
  data,
  fieldBlock,
  frame,
  getRequest,
  headers,
  settings,
  windowUpdate,
  priority,
} from '../proxy/http2-frames.ts'
import {
  CANCEL,
  CONTINUATION,
  DATA,
  ENHANCE_YOUR_CALM,
  FLOW_CONTROL_ERROR,
  GOAWAY,
  HEADERS,
  type Http2Peer,
  INTERNAL_ERROR,
  NO_ERROR,
  PING,
  PRIORITY,
  RST_STREAM,
  SETTINGS,
  STREAM_CLOSED,
} from './http2-peer.ts'

/** What one connection does to have us do more than it does itself, and what stops it. */
export interface Abuse {
  readonly name: string
  /** What is sent, `count` times or until the connection is gone. The preface and SETTINGS have been. */
  readonly first?: readonly Buffer[]
  readonly count: number
  readonly each: (index: number) => Buffer
  /**
   * The connection has ended by then, and is counted, with one of these codes or ENHANCE_YOUR_CALM where it says one;
   * `goes on`: it costs no more than what it is worth; `either`: whichever is first, our reading or our answers not
   * being read.
   */
  readonly outcome: readonly number[] | 'goes on' | 'either'
  /** The code under which our own server counts it. */
  readonly counted?: string
  /** No more requests than these have come to the app. */
  readonly askedMax: number
  /** The client does not read meanwhile. */
  readonly isDeaf?: boolean
}

/** Of the worker that is attacked. */
export const STREAMS_MAX = 100
export const RESET_BURST = 100

/** Beside those that came before the bound was found: what is read at once is judged at once. */
const ASKED_MAX = STREAMS_MAX + RESET_BURST
const block = fieldBlock(getRequest())
const id = (index: number) => 2 * index + 1
const hold = (stream: number) => headers(stream, getRequest({ ':path': '/hold' }))
const holdPost = (stream: number, ...more: string[]) =>
  headers(stream, getRequest({ ':method': 'POST', ':path': '/hold' }, ...more), { hasEnded: false })
const get = (stream: number) => headers(stream, getRequest())
const reset = (stream: number) => frame(RST_STREAM, 0, stream, Buffer.of(0, 0, 0, CANCEL))
/** RFC 9218 §7.1. */
const priorityUpdate = (stream: number, value: string) => {
  const payload = Buffer.alloc(4)
  payload.writeUInt32BE(stream)
  return frame(16, 0, 0, Buffer.concat([payload, Buffer.from(value)]))
}
/** Of 1,000 bytes each, to be added to the table. */
const entries = (index: number) =>
  Array.from({ length: 8 }, (_, entry) => {
    const name = `a${String(index * 8 + entry).padStart(5, '0')}`
    return all(Buffer.of(0x40), fieldBlock([name, 'b'.repeat(1000)]).subarray(1))
  })
const large = (stream: number) => headers(stream, getRequest({ ':path': '/large' }))
const goaway = frame(GOAWAY, 0, 0, Buffer.alloc(1000))
const all = (...frames: readonly Buffer[]) => Buffer.concat(frames)
/** A new entry of 4,000 bytes in the table, and then as many references to it as fit (RFC 7541 §6.1, §6.2.1). */
const bombEntry = all(Buffer.from('8287844101614001617fa11e', 'hex'), Buffer.alloc(4000, 'b'))
const bomb = all(Buffer.from('828784bf', 'hex'), Buffer.alloc(16_000, 0xbe))

export const ABUSES: readonly Abuse[] = [
  {
    name: 'CVE-2023-44487, rapid reset',
    count: 4000,
    each: (index) => all(hold(id(index)), frame(RST_STREAM, 0, id(index), Buffer.of(0, 0, 0, CANCEL))),
    outcome: [INTERNAL_ERROR, ENHANCE_YOUR_CALM],
    counted: 'many-resets',
    askedMax: ASKED_MAX,
  },
  ...['', 'x'.repeat(16_000)].map(
    (filling): Abuse => ({
      name: `CVE-2024-28182, CONTINUATION flood, ${filling === '' ? 'empty' : 'full'} frames`,
      first: [frame(HEADERS, 1, 1, block)],
      count: 1000,
      each: () => frame(CONTINUATION, 0, 1, filling === '' ? Buffer.alloc(0) : fieldBlock(['a', filling])),
      outcome: [INTERNAL_ERROR, ENHANCE_YOUR_CALM],
      counted: filling === '' ? 'many-continuations' : 'long-header-block',
      askedMax: 0,
    }),
  ),
  {
    name: 'CVE-2019-9511, data dribble: a window of 1',
    first: [settings([4, 0]), large(1)],
    count: 10_000,
    each: () => windowUpdate(1, 1),
    outcome: 'either',
    counted: 'many-idle-frames',
    askedMax: 1,
  },
  {
    name: 'CVE-2019-9512, PING flood',
    count: 20_000,
    each: () => frame(PING, 0, 0, Buffer.alloc(8)),
    outcome: 'either',
    counted: 'many-idle-frames',
    askedMax: 0,
  },
  {
    name: 'CVE-2019-9512, PING flood, unread',
    count: 20_000,
    each: () => frame(PING, 0, 0, Buffer.alloc(8)),
    outcome: 'either',
    counted: 'many-idle-frames',
    askedMax: 0,
    isDeaf: true,
  },
  {
    name: 'CVE-2019-9513, resource loop: a tree of priorities that is turned over and over',
    count: 20_000,
    each: (index) => priority(id(index), id(index + 1), 10, true),
    outcome: [ENHANCE_YOUR_CALM],
    counted: 'many-idle-frames',
    askedMax: 0,
  },
  {
    name: 'CVE-2019-9514, reset flood: invalid requests',
    count: 2000,
    each: (index) => headers(id(index), getRequest({}, 'X', 'y')),
    outcome: [INTERNAL_ERROR, ENHANCE_YOUR_CALM],
    counted: 'many-resets',
    askedMax: 0,
  },
  {
    name: 'CVE-2019-9515, SETTINGS flood',
    count: 20_000,
    each: () => settings([3, 1]),
    outcome: 'either',
    counted: 'many-idle-frames',
    askedMax: 0,
  },
  {
    name: 'CVE-2019-9515, SETTINGS flood, unread',
    count: 20_000,
    each: () => settings([3, 1]),
    outcome: 'either',
    counted: 'many-idle-frames',
    askedMax: 0,
    isDeaf: true,
  },
  {
    name: 'CVE-2019-9515, SETTINGS of thousands of entries',
    count: 1,
    each: () => settings(...Array.from({ length: 2700 }, (_, entry) => [256 + entry, 1] as const)),
    outcome: [ENHANCE_YOUR_CALM],
    counted: 'settings-value',
    askedMax: 0,
  },
  {
    name: 'CVE-2019-9516, fields without name and value',
    count: 2000,
    // Such fields are left out, and what is left is a request: held, as one that is answered makes room for another.
    each: (index) => headers(id(index), getRequest({ ':path': '/hold' }, ...new Array<string>(100).fill(''))),
    outcome: [INTERNAL_ERROR],
    counted: 'many-resets',
    askedMax: STREAMS_MAX,
  },
  {
    name: 'CVE-2019-9517, internal data buffering: every window open, and nothing read',
    first: [settings([4, 0x7fff_ffff]), windowUpdate(0x7fff_0000)],
    count: STREAMS_MAX,
    each: (index) => large(id(index)),
    outcome: 'either',
    askedMax: STREAMS_MAX,
    isDeaf: true,
  },
  {
    name: 'DATA without end on a stream that was reset',
    first: [holdPost(1), windowUpdate(0, 1)],
    count: 2000,
    each: () => data(1, 'x'.repeat(16_000), false),
    outcome: [STREAM_CLOSED],
    counted: 'late-data',
    askedMax: 1,
  },
  {
    name: 'CVE-2019-9518, DATA of no bytes',
    first: [holdPost(1)],
    count: 5000,
    each: () => data(1, '', false),
    outcome: [INTERNAL_ERROR],
    counted: 'many-idle-frames',
    askedMax: 1,
  },
  {
    name: 'CVE-2019-9518, DATA of nothing but padding',
    first: [holdPost(1)],
    count: 5000,
    each: () => frame(DATA, 8, 1, Buffer.of(3, 0, 0, 0)),
    outcome: 'goes on',
    askedMax: 1,
  },
  {
    name: 'DATA of one byte',
    first: [holdPost(1)],
    count: 5000,
    each: () => data(1, 'x', false),
    outcome: 'goes on',
    askedMax: 1,
  },
  {
    name: 'CVE-2025-8671, MadeYouReset: a window above 2^31-1',
    count: 1000,
    each: (index) => all(hold(id(index)), windowUpdate(0x7fff_ffff, id(index))),
    outcome: [FLOW_CONTROL_ERROR],
    counted: 'many-resets',
    askedMax: 1,
  },
  {
    name: 'CVE-2025-8671, MadeYouReset: a window opened by 0',
    count: 1000,
    each: (index) => all(hold(id(index)), windowUpdate(0, id(index))),
    outcome: [1],
    counted: 'many-resets',
    askedMax: 1,
  },
  {
    name: 'CVE-2025-8671, MadeYouReset: DATA behind the end',
    count: 1000,
    each: (index) => all(hold(id(index)), data(id(index), 'x')),
    outcome: [STREAM_CLOSED],
    counted: 'many-resets',
    askedMax: 1,
  },
  {
    name: 'CVE-2025-8671, MadeYouReset: HEADERS behind the end',
    count: 1000,
    each: (index) => all(hold(id(index)), hold(id(index))),
    outcome: [STREAM_CLOSED],
    counted: 'many-resets',
    askedMax: 1,
  },
  {
    name: 'CVE-2025-8671, MadeYouReset: a dependency on itself',
    count: 1000,
    each: (index) => all(hold(id(index)), priority(id(index), id(index), 1)),
    outcome: 'either',
    counted: 'many-resets',
    askedMax: ASKED_MAX,
  },
  {
    name: 'CVE-2025-8671, MadeYouReset: less DATA than was said',
    count: 2000,
    each: (index) => all(holdPost(id(index), 'content-length', '5'), data(id(index), 'x')),
    outcome: [INTERNAL_ERROR],
    counted: 'many-resets',
    askedMax: ASKED_MAX,
  },
  {
    name: 'CVE-2025-8671, MadeYouReset: trailers that end nothing',
    count: 2000,
    each: (index) => all(holdPost(id(index)), headers(id(index), ['a', 'b'], { hasEnded: false })),
    outcome: [INTERNAL_ERROR],
    counted: 'many-resets',
    askedMax: ASKED_MAX,
  },
  {
    name: 'CVE-2025-8671, MadeYouReset: trailers with a pseudo-header',
    count: 2000,
    each: (index) => all(holdPost(id(index)), headers(id(index), [':path', '/'])),
    outcome: [INTERNAL_ERROR],
    counted: 'many-resets',
    askedMax: ASKED_MAX,
  },
  {
    name: 'requests that we refuse',
    count: 2000,
    each: (index) => headers(id(index), getRequest({ ':path': '/a#b' })),
    outcome: 'either',
    counted: 'many-resets',
    askedMax: 0,
  },
  {
    name: 'streams that are opened, more than are allowed, and never ended',
    count: 2000,
    each: (index) => hold(id(index)),
    outcome: [INTERNAL_ERROR, ENHANCE_YOUR_CALM],
    counted: 'many-resets',
    askedMax: STREAMS_MAX,
  },
  {
    name: 'WINDOW_UPDATE of the connection above 2^31-1',
    first: [hold(1)],
    count: 1000,
    each: () => windowUpdate(0x7fff_ffff),
    outcome: [FLOW_CONTROL_ERROR],
    counted: 'flow-control',
    askedMax: 1,
  },
  {
    name: 'HPACK bomb: a field of 4,000 bytes, thousands of times in a frame',
    first: [frame(HEADERS, 5, 1, bombEntry)],
    count: 50,
    each: (index) => frame(HEADERS, 5, id(index + 1), bomb),
    outcome: 'goes on',
    askedMax: 1,
  },
  {
    name: 'HPACK table: to nothing and back in each request',
    count: STREAMS_MAX,
    each: (index) => frame(HEADERS, 5, id(index), all(Buffer.from('203fe11f', 'hex'), block)),
    outcome: 'goes on',
    askedMax: STREAMS_MAX,
  },
  {
    name: 'HPACK table: thousands of changes in one request',
    count: 50,
    each: (index) => frame(HEADERS, 5, id(index), all(Buffer.alloc(3000, 0x20), block)),
    outcome: 'goes on',
    askedMax: 50,
  },
  {
    name: 'cookies cut into 1,000 crumbs',
    count: 50,
    each: (index) =>
      headers(id(index), getRequest({}, ...Array.from({ length: 1000 }, () => ['cookie', 'a']).flat())),
    outcome: 'goes on',
    askedMax: 0,
  },
  {
    name: 'SETTINGS that open and close every window',
    first: Array.from({ length: STREAMS_MAX }, (_, index) => large(id(index))),
    count: 5000,
    each: (index) => settings([4, index % 2 === 0 ? 0 : 60_000]),
    outcome: 'either',
    counted: 'many-idle-frames',
    askedMax: STREAMS_MAX,
  },
  {
    name: 'GOAWAY flood',
    count: 2000,
    each: () => goaway,
    outcome: [NO_ERROR],
    counted: 'many-idle-frames',
    askedMax: 0,
  },
  {
    name: 'GOAWAY flood beside a request',
    first: [hold(1)],
    count: 2000,
    each: () => goaway,
    outcome: 'either',
    counted: 'many-idle-frames',
    askedMax: 1,
  },
  {
    name: 'unknown frames',
    count: 20_000,
    each: () => frame(0x42, 0, 0, Buffer.alloc(10)),
    outcome: [ENHANCE_YOUR_CALM],
    counted: 'many-idle-frames',
    askedMax: 0,
  },
  {
    name: 'DATA beyond every window',
    first: [headers(1, getRequest({ ':method': 'POST', ':path': '/unread' }), { hasEnded: false })],
    count: 4000,
    each: () => data(1, Buffer.alloc(16_384), false),
    outcome: 'either',
    askedMax: 1,
  },
  {
    name: 'DATA with padding beyond every window',
    first: [headers(1, getRequest({ ':method': 'POST', ':path': '/unread' }), { hasEnded: false })],
    count: 4000,
    each: () => frame(DATA, 8, 1, Buffer.alloc(16_384)),
    outcome: 'either',
    askedMax: 1,
  },
  {
    name: 'DATA with empty frames between, beyond every window',
    first: [headers(1, getRequest({ ':method': 'POST', ':path': '/unread' }), { hasEnded: false })],
    count: 900,
    each: () => all(data(1, Buffer.alloc(16_384), false), data(1, '', false)),
    outcome: 'either',
    askedMax: 1,
  },
  {
    name: 'CVE-2024-27983, a field block that is left in the middle',
    first: [hold(1), frame(HEADERS, 1, 3, block.subarray(0, 5))],
    count: 3,
    each: () => frame(CONTINUATION, 0, 3, Buffer.of(0)),
    outcome: 'either',
    askedMax: 1,
  },
  {
    name: 'PRIORITY_UPDATE of one stream',
    first: [hold(1)],
    count: 100_000,
    each: (index) => priorityUpdate(1, `u=${index % 8}`),
    outcome: 'either',
    counted: 'many-idle-frames',
    askedMax: 1,
  },
  {
    name: 'PRIORITY_UPDATE of streams that are still to come',
    count: 100_000,
    each: (index) => priorityUpdate(id(index), 'u=1'),
    outcome: 'either',
    counted: 'many-idle-frames',
    askedMax: 0,
  },
  {
    name: 'PRIORITY of streams that are still to come',
    count: 100_000,
    each: (index) => priority(id(index), 0, 10),
    outcome: 'either',
    counted: 'many-idle-frames',
    askedMax: 0,
  },
  {
    name: 'WINDOW_UPDATE of one byte, of the connection',
    count: 100_000,
    each: () => windowUpdate(1),
    outcome: 'either',
    counted: 'many-idle-frames',
    askedMax: 0,
  },
  {
    name: 'WINDOW_UPDATE of one byte, of a stream that has nothing to send',
    first: [hold(1)],
    count: 100_000,
    each: () => windowUpdate(1, 1),
    outcome: 'either',
    counted: 'many-idle-frames',
    askedMax: 1,
  },
  {
    name: 'WINDOW_UPDATE of a stream that is over',
    first: [hold(1), reset(1)],
    count: 100_000,
    each: () => windowUpdate(1, 1),
    outcome: 'either',
    counted: 'many-idle-frames',
    askedMax: 1,
  },
  {
    name: 'RST_STREAM of a stream that is over',
    first: [hold(1)],
    count: 100_000,
    each: () => reset(1),
    outcome: 'either',
    counted: 'many-resets',
    askedMax: 1,
  },
  {
    name: 'DATA of a stream that is over',
    first: [holdPost(1), reset(1)],
    count: 100_000,
    each: () => data(1, 'x', false),
    outcome: 'either',
    counted: 'closed-stream',
    askedMax: 1,
  },
  {
    name: 'empty DATA of a stream that is over',
    first: [holdPost(1), reset(1)],
    count: 100_000,
    each: () => data(1, '', false),
    outcome: 'either',
    counted: 'closed-stream',
    askedMax: 1,
  },
  {
    name: 'HEADERS of a stream that is over',
    first: [hold(1), reset(1)],
    count: 10_000,
    each: () => hold(1),
    outcome: 'either',
    counted: 'closed-stream',
    askedMax: 1,
  },
  {
    name: 'acknowledgements of SETTINGS that were not sent',
    count: 100_000,
    each: () => frame(SETTINGS, 1, 0),
    outcome: 'either',
    counted: 'settings-value',
    askedMax: 0,
  },
  {
    name: 'acknowledgements of a PING that was not sent',
    count: 100_000,
    each: () => frame(PING, 1, 0, Buffer.alloc(8)),
    outcome: 'either',
    counted: 'many-idle-frames',
    askedMax: 0,
  },
  {
    name: 'unknown frames of 16,384 bytes',
    count: 5000,
    each: () => frame(0x42, 0, 0, Buffer.alloc(16_384)),
    outcome: 'either',
    counted: 'many-idle-frames',
    askedMax: 0,
  },
  {
    name: 'SETTINGS that change the table of every answer',
    count: STREAMS_MAX,
    each: (index) => all(settings([1, index % 2 === 0 ? 0 : 0xffff_ffff]), get(id(index))),
    outcome: 'goes on',
    askedMax: STREAMS_MAX,
  },
  {
    name: 'HPACK: a table that is filled anew by each request',
    count: STREAMS_MAX,
    each: (index) => frame(HEADERS, 5, id(index), all(block, ...entries(index))),
    outcome: 'either',
    askedMax: STREAMS_MAX,
  },
  {
    name: 'CVE-2025-8671, MadeYouReset: PRIORITY of another length',
    count: 1000,
    each: (index) => all(hold(id(index)), frame(PRIORITY, 0, id(index), Buffer.alloc(4))),
    outcome: 'either',
    counted: 'frame-size',
    askedMax: ASKED_MAX,
  },
  {
    name: 'CVE-2025-8671, MadeYouReset: HEADERS that depend on themselves',
    count: 1000,
    each: (index) => {
      const depends = Buffer.alloc(5)
      depends.writeUInt32BE(id(index))
      return frame(HEADERS, 0x25, id(index), all(depends, block))
    },
    outcome: 'either',
    counted: 'many-resets',
    askedMax: ASKED_MAX,
  },
  {
    name: 'CVE-2025-8671, MadeYouReset: more DATA than was said',
    count: 1000,
    each: (index) => all(holdPost(id(index), 'content-length', '1'), data(id(index), 'xx')),
    outcome: 'either',
    counted: 'many-resets',
    askedMax: ASKED_MAX,
  },
  {
    name: 'CVE-2025-8671, MadeYouReset: malformed trailers',
    count: 1000,
    each: (index) => all(holdPost(id(index)), headers(id(index), ['A', 'b'])),
    outcome: 'either',
    counted: 'many-resets',
    askedMax: ASKED_MAX,
  },
  {
    name: 'CVE-2025-8671, MadeYouReset: a trailer with a blank at its end',
    count: 1000,
    each: (index) => all(holdPost(id(index)), headers(id(index), ['a', 'b '])),
    outcome: 'either',
    counted: 'many-resets',
    askedMax: ASKED_MAX,
  },
  {
    name: 'windows below 0: every answer begun, and every window taken back',
    first: Array.from({ length: STREAMS_MAX }, (_, index) => large(id(index))),
    count: 5000,
    each: (index) => all(settings([4, 0]), windowUpdate(1, id(index % STREAMS_MAX)), settings([4, 1])),
    outcome: 'either',
    counted: 'many-idle-frames',
    askedMax: STREAMS_MAX,
  },
  {
    name: 'bodies that are never ended, as many as are allowed, byte by byte',
    first: Array.from({ length: STREAMS_MAX }, (_, index) => holdPost(id(index))),
    count: 100_000,
    each: (index) => data(id(index % STREAMS_MAX), 'x', false),
    outcome: 'either',
    askedMax: STREAMS_MAX,
  },
]

/** Sends all of it, as fast as it is taken; a client that does not read is not waited for. */
export async function abuse(
  peer: Http2Peer,
  { first = [], count, each, isDeaf = false }: Abuse,
): Promise<void> {
  if (isDeaf) peer.socket.pause()
  peer.write(...first)
  for (let index = 0; index < count && !peer.isClosed; ) {
    const frames: Buffer[] = []
    for (let bytes = 0; index < count && bytes < WRITE_BYTES; index++)
      bytes += frames[frames.push(each(index)) - 1]!.length
    peer.write(...frames)
    await (isDeaf ? breathe() : peer.sent())
  }
  await breathe()
}

function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

const WRITE_BYTES = 16_384
