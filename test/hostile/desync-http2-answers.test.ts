import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { type Test, test } from 'tap'
import { HpackDecoder } from '../../src/wire/h2/hpack-decoder.ts'
import { data, type Frame, frame, framesOf, headers, PREFACE, settings } from '../proxy/http2-frames.ts'
import { FRONTS, startGate } from './desync-gate.ts'
import { ask, type Heard, type Method, WAYS } from './desync-hear.ts'
import { ownName } from './desync-upstreams.ts'

/** The frames of an answer on a stream, and what the client hears of it. */
type Row = readonly [
  name: string,
  heard: Heard | 'none',
  frames: (stream: number) => readonly Buffer[],
  method?: Method,
]

const OK: Heard = { status: 200, body: 'ok' }
const EMPTY: Heard = { status: 200, body: '' }

function head(stream: number, ...fields: readonly string[]): Buffer {
  return headers(stream, [':status', '200', ...fields], { hasEnded: false })
}

const ROWS: readonly Row[] = [
  ['an answer', OK, (n) => [head(n), data(n, 'ok')]],
  ['an answer with its length', OK, (n) => [head(n, 'content-length', '2'), data(n, 'ok')]],
  ['trailers', OK, (n) => [head(n), data(n, 'ok', false), headers(n, ['a', 'b'])]],
  ['a hint before', OK, (n) => [headers(n, [':status', '103'], { hasEnded: false }), head(n), data(n, 'ok')]],
  ['two answers', 'broken', (n) => [head(n), data(n, 'ok', false), head(n), data(n, 'poison')]],
  ['two heads', 'broken', (n) => [head(n), head(n), data(n, 'ok')]],
  ['more behind its end', OK, (n) => [head(n), data(n, 'ok'), data(n, 'poison')]],
  ['another head behind its end', OK, (n) => [head(n), data(n, 'ok'), head(n), data(n, 'poison')]],
  ['the answer to the next request', OK, (n) => [head(n), data(n, 'ok'), head(n + 2), data(n + 2, 'poison')]],
  ['only the answer to the next request', 'none', (n) => [head(n + 2), data(n + 2, 'poison')]],
  ['a promise', 'none', (n) => [frame(5, 4, n, Buffer.of(0, 0, 0, 2)), head(n), data(n, 'ok')]],
  ['a body before its head', 'none', (n) => [data(n, 'ok')]],
  ['a length that is too short', 'broken', (n) => [head(n, 'content-length', '1'), data(n, 'ok')]],
  ['a length that is too long', 'broken', (n) => [head(n, 'content-length', '3'), data(n, 'ok')]],
  ['a length and no body', 'none', (n) => [headers(n, [':status', '200', 'content-length', '3'])]],
  ['two lengths', 'none', (n) => [head(n, 'content-length', '2', 'content-length', '3'), data(n, 'ok')]],
  ['an invalid length', 'none', (n) => [head(n, 'content-length', '+2'), data(n, 'ok')]],
  ['a coding', 'none', (n) => [head(n, 'transfer-encoding', 'chunked'), data(n, '2\r\nok\r\n0\r\n\r\n')]],
  ['Connection', 'none', (n) => [head(n, 'connection', 'close'), data(n, 'ok')]],
  ['an upgrade', 'none', (n) => [head(n, 'upgrade', 'h2c'), data(n, 'ok')]],
  ['a name in upper case', 'none', (n) => [head(n, 'A', 'b'), data(n, 'ok')]],
  ['CR LF in a value', 'none', (n) => [head(n, 'a', 'b\r\nset-cookie: c'), data(n, 'ok')]],
  ['an answer in a value', 'none', (n) => [head(n, 'a', 'b\r\n\r\nHTTP/1.1 200 OK\r\n\r\n'), data(n, 'ok')]],
  ['blanks around a value', OK, (n) => [head(n, 'a', ' b\t '), data(n, 'ok')]],
  ['NUL in a value', 'none', (n) => [head(n, 'a', 'b\0c'), data(n, 'ok')]],
  ['CR LF in a name', 'none', (n) => [head(n, 'a\r\nb', 'c'), data(n, 'ok')]],
  ['a colon in a name', 'none', (n) => [head(n, 'a:b', 'c'), data(n, 'ok')]],
  ['no status', 'none', (n) => [headers(n, ['a', 'b'], { hasEnded: false }), data(n, 'ok')]],
  ['two statuses', 'none', (n) => [head(n, ':status', '200'), data(n, 'ok')]],
  ['a late status', 'none', (n) => [headers(n, ['a', 'b', ':status', '200'], { hasEnded: false })]],
  ['a path', 'none', (n) => [head(n, ':path', '/'), data(n, 'ok')]],
  ['an unknown pseudo-header', 'none', (n) => [head(n, ':foo', '/'), data(n, 'ok')]],
  ...['20', '2000', '099', '600', 'abc', '+20', '', '200 OK', '200\r\n'].map(
    (status): Row => [
      `status “${status}”`,
      'none',
      (n) => [headers(n, [':status', status], { hasEnded: false }), data(n, 'ok')],
    ],
  ),
  ['101', 'none', (n) => [headers(n, [':status', '101'], { hasEnded: false }), data(n, 'ok')]],
  ['100 that ends', 'none', (n) => [headers(n, [':status', '100'])]],
  [
    'too many interim answers',
    'none',
    (n) => [
      ...new Array(40).fill(headers(n, [':status', '103'], { hasEnded: false })),
      head(n),
      data(n, 'ok'),
    ],
  ],
  ['HEAD with a length', EMPTY, (n) => [headers(n, [':status', '200', 'content-length', '2'])], 'HEAD'],
  ['HEAD with a body', EMPTY, (n) => [head(n), data(n, 'ok')], 'HEAD'],
  [
    '204 with a body',
    { status: 204, body: '' },
    (n) => [headers(n, [':status', '204'], { hasEnded: false }), data(n, 'ok')],
  ],
  [
    '304 with a body',
    { status: 304, body: '' },
    (n) => [headers(n, [':status', '304'], { hasEnded: false }), data(n, 'ok')],
  ],
  ['a path for a trailer', 'broken', (n) => [head(n), data(n, 'ok', false), headers(n, [':path', '/'])]],
  [
    'a coding for a trailer',
    'broken',
    (n) => [head(n), data(n, 'ok', false), headers(n, ['transfer-encoding', 'chunked'])],
  ],
  ['CR LF in a trailer', 'broken', (n) => [head(n), data(n, 'ok', false), headers(n, ['a', 'b\r\nc: d'])]],
  [
    'trailers that end nothing',
    'broken',
    (n) => [head(n), data(n, 'ok', false), headers(n, ['a', 'b'], { hasEnded: false })],
  ],
  ['a reset before', 'none', (n) => [frame(3, 0, n, Buffer.of(0, 0, 0, 2))]],
  ['a reset within', 'broken', (n) => [head(n), data(n, 'o', false), frame(3, 0, n, Buffer.of(0, 0, 0, 2))]],
  ['a frame on no stream', 'none', () => [data(0, 'ok')]],
  ['a CONTINUATION of nothing', 'none', (n) => [frame(9, 4, n)]],
  ['an invalid block', 'none', (n) => [frame(1, 4, n, Buffer.of(0xff, 0xff, 3))]],
  ['HTTP/1', 'none', () => [Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')]],
]

for (const [front, settingsOf] of Object.entries(FRONTS)) {
  test(`${front}: whatever an upstream answers over h2c, each client gets its own answer or an error`, async (t) => {
    const upstream = await startLiar(t)
    const gate = await startGate(t, upstream.url, settingsOf)
    const bystander = await gate.dial('plain')
    const faults: string[] = []
    for (const [name, wanted, frames, method = 'GET'] of ROWS) {
      for (const [way, hear] of Object.entries(WAYS)) {
        upstream.say(frames)
        try {
          const heard = wanted === 'none' ? { status: 502, body: '' } : wanted
          assert.deepEqual(await hear(gate, method), heard)
          await ask(bystander, 'GET')
          await ask(bystander, 'POST')
        } catch (error) {
          faults.push(`${name} (${way}): ${(error as Error).message}`)
        }
      }
    }
    assert.equal(faults.join('\n\n'), '')
    t.comment(`${ROWS.length} answers`)
  })
}

/** Answers to `/lie` as it is told to, and to all others with what they asked for. */
async function startLiar(t: Test): Promise<{ url: string; say(frames: Row[2]): void }> {
  let lie: Row[2] = () => []
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    const talk = new Talk(
      (bytes) => socket.write(bytes),
      (stream) => lie(stream),
    )
    socket.on('data', (bytes) => talk.read(bytes))
    socket.write(settings())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    url: `h2c://127.0.0.1:${(server.address() as AddressInfo).port}`,
    say: (frames) => {
      lie = frames
    },
  }
}

/** One connection, as far as it has to be understood. */
class Talk {
  readonly #decoder = new HpackDecoder()
  readonly #asked = new Map<number, { method: string; path: string; bodyLength: number }>()
  readonly #write: (bytes: Buffer) => void
  readonly #lie: (stream: number) => readonly Buffer[]
  #bytes: Buffer = Buffer.alloc(0)
  #isOpen = false

  constructor(write: (bytes: Buffer) => void, lie: (stream: number) => readonly Buffer[]) {
    this.#write = write
    this.#lie = lie
  }

  read(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes])
    if (!this.#isOpen && this.#bytes.length >= PREFACE.length) {
      this.#isOpen = true
      this.#bytes = this.#bytes.subarray(PREFACE.length)
    }
    if (!this.#isOpen) return
    for (const one of framesOf(this.#bytes)) {
      this.#bytes = this.#bytes.subarray(9 + one.payload.length)
      this.#take(one)
    }
  }

  #take({ type, flags, stream, payload }: Frame): void {
    if (type === SETTINGS && flags === 0) this.#write(frame(SETTINGS, 1, 0))
    if (type === HEADERS) this.#opened(stream, payload)
    const asked = this.#asked.get(stream)
    if (asked === undefined) return
    if (type === DATA) asked.bodyLength += payload.length
    if ((type === HEADERS || type === DATA) && (flags & END_STREAM) !== 0) {
      const name = ownName(asked.method, asked.path, asked.bodyLength)
      this.#write(Buffer.concat([head(stream), data(stream, name)]))
    }
  }

  #opened(stream: number, payload: Buffer): void {
    const fields: string[] = []
    assert.equal(this.#decoder.decode(payload, fields), 'whole')
    const [method = '', path = ''] = [':method', ':path'].map((name) => fields[fields.indexOf(name) + 1])
    if (path === '/lie') this.#write(Buffer.concat(this.#lie(stream)))
    else this.#asked.set(stream, { method, path, bodyLength: 0 })
  }
}

const [DATA, HEADERS, SETTINGS] = [0, 1, 4]
const END_STREAM = 1
