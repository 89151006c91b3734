import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import http2 from 'node:http2'
import net, { type AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { test } from 'tap'
import { Http1Requests } from '../../src/capture/http1.ts'
import { BLOCK_BYTES_MAX, Http2Requests, type Http2State } from '../../src/capture/http2.ts'
import { HTTP2_PREFACE } from '../../src/wire/http2-preface.ts'
import type { RequestHead } from '../../src/wire/request-head.ts'
import { recorded } from './recorded.ts'
import { skipped } from '../e2e/programs.ts'
import { timeBox } from '../time-box.ts'

const skip = skipped('curl')

interface Seen {
  readonly head: RequestHead
  readonly stream: number
}

interface Stream {
  readonly name: string
  readonly bytes: Buffer
  readonly seen: readonly Seen[]
  readonly state: Http2State
}

// Types and flags of frames, RFC 9113 §6.
const DATA = 0x0
const HEADERS = 0x1
const PRIORITY = 0x2
const SETTINGS = 0x4
const PUSH_PROMISE = 0x5
const PING = 0x6
const CONTINUATION = 0x9
const GREASE = 0x0b
const END_STREAM = 0x1
const END_HEADERS = 0x4
const PADDED = 0x8
const WITH_PRIORITY = 0x20
const WHOLE = END_STREAM | END_HEADERS

// Header blocks, RFC 7541.
const GET = '828684'
const ADD_A = '4001610162'
const NEWEST = 'be'

const get = head('GET', '/', [':method', 'GET', ':scheme', 'http', ':path', '/'])
const getA = head('GET', '/', [...get.rawHeaders, 'a', 'b'])

const streams: readonly Stream[] = [
  connection('frames without headers', [
    frame(SETTINGS, 0, 0, '000100001000'),
    frame(PRIORITY, 0, 1, '0000000010'),
    frame(GREASE, 0xff, 7, '00'.repeat(40)),
    frame(DATA, 0, 1, '82'),
    frame(SETTINGS, 0x1, 0, ''),
  ]),
  connection(
    'requests of one connection share a table',
    [
      frame(HEADERS, WHOLE, 1, GET + ADD_A),
      frame(PING, 0, 0, '00'.repeat(8)),
      frame(HEADERS, WHOLE, 3, GET + NEWEST),
    ],
    [getA, 1],
    [getA, 3],
  ),
  connection(
    'padding and priority',
    [
      frame(HEADERS, WHOLE | PADDED, 1, `03${GET}ffffff`),
      frame(HEADERS, WHOLE | WITH_PRIORITY, 3, `0000000010${GET}`),
      frame(HEADERS, WHOLE | PADDED | WITH_PRIORITY, 5, `018000000010${GET}00`),
      frame(HEADERS, WHOLE | PADDED, 7, `00${GET}`),
    ],
    [get, 1],
    [get, 3],
    [get, 5],
    [get, 7],
  ),
  connection(
    'a block in pieces',
    [
      frame(HEADERS, END_STREAM | PADDED, 1, `0282${'00'.repeat(2)}`),
      frame(CONTINUATION, 0, 1, ''),
      frame(CONTINUATION, 0, 1, '86844001'),
      frame(CONTINUATION, END_HEADERS, 1, '610162'),
      frame(HEADERS, END_STREAM, 3, ''),
      frame(CONTINUATION, END_HEADERS, 3, GET),
    ],
    [getA, 1],
    [get, 3],
  ),
  connection(
    'trailers are no request, but fill the table',
    [
      frame(HEADERS, END_HEADERS, 1, GET),
      frame(HEADERS, END_HEADERS, 3, GET),
      frame(DATA, 0, 1, '00'.repeat(300)),
      frame(HEADERS, WHOLE, 1, ADD_A),
      frame(DATA, END_STREAM, 3, ''),
      frame(HEADERS, WHOLE, 5, GET + NEWEST),
    ],
    [get, 1],
    [get, 3],
    [getA, 5],
  ),
  connection(
    'after an upgrade, requests begin at stream 3',
    [frame(SETTINGS, 0, 0, ''), frame(HEADERS, WHOLE, 3, GET)],
    [get, 3],
  ),
  connection(
    "pseudo-headers in the client's order, the high bit of a stream no matter",
    [frame(HEADERS, WHOLE, 0x8000_0001, '84868241017887')],
    [
      head('GET', '/', [
        ':path',
        '/',
        ':scheme',
        'http',
        ':method',
        'GET',
        ':authority',
        'x',
        ':scheme',
        'https',
      ]),
      1,
    ],
  ),
  connection(
    'CONNECT, and CONNECT for a protocol of its own',
    [
      frame(HEADERS, END_HEADERS, 1, `0207434f4e4e4543540103613a31`),
      frame(HEADERS, END_HEADERS, 3, `0207434f4e4e454354010161${'84'}`),
    ],
    [head('CONNECT', 'a:1', [':method', 'CONNECT', ':authority', 'a:1']), 1],
    [head('CONNECT', '/', [':method', 'CONNECT', ':authority', 'a', ':path', '/']), 3],
  ),
  connection(
    'CONNECT for a WebSocket, which is read as the upgrade that it stands for',
    [frame(HEADERS, END_HEADERS, 1, `0207434f4e4e4543540101618400093a70726f746f636f6c09776562736f636b6574`)],
    [
      head('GET', '/', [
        ...[':method', 'CONNECT', ':authority', 'a', ':path', '/', ':protocol', 'websocket'],
        ...['connection', 'Upgrade', 'upgrade', 'websocket'],
      ]),
      1,
    ],
  ),
  connection(
    'blocks that are no request',
    [
      frame(HEADERS, WHOLE, 1, ADD_A),
      frame(HEADERS, WHOLE, 3, '82'),
      frame(HEADERS, WHOLE, 5, '84'),
      frame(HEADERS, WHOLE, 6, GET),
      frame(HEADERS, WHOLE, 7, ''),
      frame(HEADERS, WHOLE, 9, GET + NEWEST),
    ],
    [getA, 9],
  ),
  broken('a compression error', frame(HEADERS, WHOLE, 3, '80')),
  broken('HEADERS on stream 0', frame(HEADERS, WHOLE, 0, GET)),
  broken('more padding than payload', frame(HEADERS, WHOLE | PADDED, 3, `04${GET}`)),
  broken('no room for the padding', frame(HEADERS, WHOLE | PADDED, 3, '')),
  broken('no room for the priority', frame(HEADERS, WHOLE | WITH_PRIORITY, 3, GET)),
  broken('CONTINUATION of nothing', frame(CONTINUATION, END_HEADERS, 3, GET)),
  broken('PUSH_PROMISE', frame(PUSH_PROMISE, END_HEADERS, 3, `00000002${GET}`)),
  broken('another frame within a block', frame(HEADERS, 0, 3, GET), frame(PING, 0, 0, '00'.repeat(8))),
  broken('another stream within a block', frame(HEADERS, 0, 3, GET), frame(CONTINUATION, END_HEADERS, 5, '')),
  {
    name: 'no preface',
    bytes: Buffer.concat([frame(SETTINGS, 0, 0, '00'.repeat(36)), frame(HEADERS, WHOLE, 1, GET)]),
    seen: [],
    state: 'opaque',
  },
]

for (const { name, bytes, ...expected } of streams) {
  test(`http2: ${name}`, async () => {
    assert.deepEqual(read([bytes]), expected)
    assert.deepEqual(read(cutEvery(bytes, 1)), expected, 'byte by byte')
    for (let cut = 1; cut < bytes.length; cut++) {
      assert.deepEqual(read([bytes.subarray(0, cut), bytes.subarray(cut)]), expected, `cut at ${cut}`)
    }
  })
}

test('http2: the chunk may be used again after the call', async () => {
  const { bytes, ...expected } = streams.find(({ name }) => name === 'a block in pieces')!
  for (const length of [1, 3, 7, 20]) {
    const seen: Seen[] = []
    const requests = new Http2Requests((each, _frame, stream) => seen.push({ head: each, stream }))
    for (const piece of cutEvery(bytes, length)) {
      const chunk = Buffer.from(piece)
      requests.push(chunk, 1)
      chunk.fill(0)
    }
    assert.deepEqual(seen, expected.seen)
  }
})

test('http2: a request is reported under the frame its head was complete in', async () => {
  const frames: number[] = []
  const requests = new Http2Requests((_head, frame) => frames.push(frame))
  requests.push(HTTP2_PREFACE, 1)
  const block = frame(HEADERS, WHOLE, 1, GET)
  requests.push(block.subarray(0, 10), 2)
  requests.push(Buffer.concat([block.subarray(10), frame(HEADERS, END_STREAM, 3, GET)]), 3)
  requests.push(frame(CONTINUATION, END_HEADERS, 3, ''), 4)
  assert.deepEqual(frames, [3, 4])
})

test('http2: bytes missing from a payload without headers are no loss, others are the end', async () => {
  const seen: number[] = []
  const requests = new Http2Requests((_head, _frame, stream) => seen.push(stream))
  requests.push(Buffer.concat([HTTP2_PREFACE, frame(HEADERS, END_HEADERS, 1, GET)]), 1)
  requests.push(frame(DATA, 0, 1, '00'.repeat(500)).subarray(0, 100), 2)
  assert.equal(requests.skip(409), true)
  assert.equal(requests.skip(0), true)
  assert.equal(requests.push(frame(HEADERS, WHOLE, 3, GET), 3), 'reading')
  assert.deepEqual(seen, [1, 3])
  assert.equal(requests.skip(1), false)
  assert.equal(requests.push(frame(HEADERS, WHOLE, 5, GET), 4), 'opaque')
  assert.equal(requests.skip(0), false)
  assert.deepEqual(seen, [1, 3])
})

test('http2: a header block has a limit, other payloads have none', async () => {
  const huge = 0xff_ff_ff
  const data = Buffer.concat([HTTP2_PREFACE, frame(DATA, 0, 1, '').fill(0xff, 0, 3), Buffer.alloc(huge)])
  const after = frame(HEADERS, WHOLE, 1, GET)
  assert.deepEqual(read([data, after]).seen, [{ head: get, stream: 1 }])

  const announced = frame(HEADERS, WHOLE, 1, '')
  announced.writeUIntBE(BLOCK_BYTES_MAX + 1, 0, 3)
  assert.equal(read([HTTP2_PREFACE, announced]).state, 'opaque')
  announced.writeUIntBE(BLOCK_BYTES_MAX, 0, 3)
  assert.equal(read([HTTP2_PREFACE, announced]).state, 'reading')

  const flood = frame(CONTINUATION, 0, 1, '20'.repeat(1024)) // size updates, which add nothing to the list
  const pieces = [
    HTTP2_PREFACE,
    frame(HEADERS, 0, 1, ''),
    ...Array<Buffer>(BLOCK_BYTES_MAX / 1024 - 1).fill(flood),
  ]
  const end = frame(CONTINUATION, END_HEADERS, 1, GET)
  assert.deepEqual(read([...pieces, end]).seen, [{ head: get, stream: 1 }])
  assert.equal(read([...pieces, flood, end]).state, 'opaque')
})

test('http2: pieces of any size give the same requests', async () => {
  const property = fc.property(fc.constantFrom(...streams), sizes, ({ bytes, seen, state }, lengths) => {
    assert.deepEqual(read(cutInto(bytes, lengths)), { seen, state })
  })
  fc.assert(property, TIME_BOX)
})

test('http2: any bytes, lost ones too, are read to the end without a throw', async () => {
  const mutated = fc
    .tuple(fc.constantFrom(...streams), fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }))
    .map(([{ bytes }, changes]) => {
      const changed = Buffer.from(bytes)
      for (const [at, byte] of changes) changed[at % changed.length] = byte
      return changed
    })
  const frames = fc
    .array(fc.tuple(fc.nat(10), fc.nat(255), fc.nat(4), fc.uint8Array({ maxLength: 12 })), { maxLength: 8 })
    .map((all) =>
      all.map(([type, flags, stream, payload]) => frame(type, flags, stream, Buffer.from(payload))),
    )
    .map((all) => Buffer.concat([HTTP2_PREFACE, ...all]))
  const parts = fc.array(fc.tuple(fc.oneof(mutated, frames, fc.uint8Array()), fc.nat(20)), { maxLength: 3 })
  const property = fc.property(parts, sizes, (chosen, lengths) => {
    const requests = new Http2Requests((each) => assert.equal(each.rawHeaders.length % 2, 0))
    for (const [part, missing] of chosen) {
      for (const piece of cutInto(part, lengths)) requests.push(piece, 1)
      requests.skip(missing)
    }
    const whole = Buffer.concat(chosen.map(([part]) => part))
    assert.deepEqual(read(cutInto(whole, lengths)), read([whole]))
  })
  fc.assert(property, TIME_BOX)
})

test('http2: what node:http2 sends is read as node:http2 reads it', async () => {
  const { sent, seen } = await record({}, async (port) => {
    const session = connect(port, { paddingStrategy: http2.constants.PADDING_STRATEGY_MAX })
    await ask(session, { ':path': '/get?q=1', cookie: ['a=1', 'b=2'], 'x-empty': '' })
    await ask(session, { ':path': '/large', 'x-large': 'x'.repeat(40_000) })
    await ask(
      session,
      { ':path': '/body', ':method': 'POST' },
      { body: 'x'.repeat(100_000), trailers: { 'x-sum': '1' } },
    )
    await ask(session, { ':path': '/again', 'x-sum': '1' })
    session.close()
    await once(session, 'close')
  })
  assert.deepEqual(
    seen.map(({ stream }) => stream),
    [1, 3, 5, 7],
  )
  assert.deepEqual(read([sent]), { seen, state: 'reading' })
  assert.deepEqual(read(cutEvery(sent, 1)), { seen, state: 'reading' })
})

test('http2: any headers node:http2 sends, with any table', async () => {
  const name = fc.oneof(fc.constantFrom('accept', 'cookie', 'x-a'), fc.stringMatching(/^x-[a-z0-9]{0,9}$/))
  const value = fc.stringMatching(/^([!-~\x80-\xff]([ -~\x80-\xff]{0,60}[!-~\x80-\xff])?)?$/)
  const headers = fc.dictionary(name, fc.array(value, { minLength: 1, maxLength: 3 }), { maxKeys: 8 })
  const lists = fc.array(fc.tuple(headers, fc.boolean()), { minLength: 1, maxLength: 8 })
  const tableSize = fc.constantFrom(0, 100, 500, 4096, 65_536)
  const property = fc.asyncProperty(lists, tableSize, sizes, async (requests, headerTableSize, lengths) => {
    const { sent, seen } = await record({ headerTableSize }, async (port) => {
      const session = connect(port, { maxDeflateDynamicTableSize: 65_536 })
      await once(session, 'remoteSettings')
      for (const [each, sensitive] of requests) {
        await ask(session, { ...each, ...(sensitive && { [http2.sensitiveHeaders]: Object.keys(each) }) })
      }
      session.close()
      await once(session, 'close')
    })
    assert.equal(seen.length, requests.length)
    assert.deepEqual(read(cutInto(sent, lengths)), { seen, state: 'reading' })
  })
  await fc.assert(property, TIME_BOX)
})

test('http2: what curl sends is read as node:http2 reads it', { skip }, async () => {
  const { sent, seen } = await record({}, async (port) => {
    await run('curl', [
      '-s',
      '--http2-prior-knowledge',
      '-b',
      'a=1; b=2',
      '-d',
      'x=y',
      `http://127.0.0.1:${port}/1`,
    ])
  })
  assert.equal(seen[0]?.head.target, '/1')
  assert.deepEqual(read([sent]), { seen, state: 'reading' })
})

test('http2: curl upgrades from HTTP/1.1, and goes on with stream 3', { skip }, async () => {
  const targets: [string, number][] = []
  const server = net.createServer((socket) => {
    const ok = (stream: number) => socket.write(frame(HEADERS, WHOLE, stream, '88'))
    const http2Requests = new Http2Requests((each, _frame, stream) => {
      targets.push([each.target, stream])
      ok(stream)
    })
    const http1Requests = new Http1Requests((each) => {
      targets.push([each.target, 1])
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n')
      socket.write(frame(SETTINGS, 0, 0, ''))
      ok(1)
    })
    let upgraded = false
    socket.on('data', (chunk) => {
      const bytes = upgraded ? chunk : http1Requests.push(chunk, 1) === 'opaque' ? http1Requests.rest() : null
      if (bytes === null) return
      upgraded = true
      http2Requests.push(bytes, 1)
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await run('curl', ['-s', '-m', '10', '--http2', `${url}/1`, `${url}/2`]).finally(() => server.close())
  assert.deepEqual(targets, [
    ['/1', 1],
    ['/2', 3],
  ])
})

function head(method: string, target: string, rawHeaders: readonly string[]): RequestHead {
  return { method, target, version: '20', rawHeaders }
}

function connection(name: string, frames: readonly Buffer[], ...seen: [RequestHead, number][]): Stream {
  return {
    name,
    bytes: Buffer.concat([HTTP2_PREFACE, ...frames]),
    seen: seen.map(([each, stream]) => ({ head: each, stream })),
    state: 'reading',
  }
}

/** A connection with a request before `frames`, and one after them that must not be believed. */
function broken(name: string, ...frames: readonly Buffer[]): Stream {
  const request = frame(HEADERS, WHOLE, 1, GET)
  return {
    ...connection(name, [request, ...frames, frame(HEADERS, WHOLE, 9, GET)], [get, 1]),
    state: 'opaque',
  }
}

function frame(type: number, flags: number, stream: number, payload: string | Buffer): Buffer {
  const bytes = typeof payload === 'string' ? Buffer.from(payload, 'hex') : payload
  const header = Buffer.alloc(9)
  header.writeUIntBE(bytes.length, 0, 3)
  header.writeUInt8(type, 3)
  header.writeUInt8(flags, 4)
  header.writeUInt32BE(stream, 5)
  return Buffer.concat([header, bytes])
}

function read(pieces: readonly Uint8Array[]): { seen: Seen[]; state: Http2State } {
  const seen: Seen[] = []
  const requests = new Http2Requests((each, _frame, stream) => seen.push({ head: each, stream }))
  let state: Http2State = 'reading'
  for (const [i, piece] of pieces.entries()) state = requests.push(piece, i)
  return { seen, state }
}

function cutEvery(bytes: Uint8Array, length: number): Uint8Array[] {
  return cutInto(bytes, [length])
}

/** Pieces of these sizes, over and over. */
function cutInto(bytes: Uint8Array, lengths: readonly number[]): Uint8Array[] {
  const pieces: Uint8Array[] = []
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const length = lengths[i % lengths.length]!
    pieces.push(bytes.subarray(at, at + length))
    at += length
  }
  return pieces
}

/** What a client sent to a server of node:http2, and what the server made of it. */
async function record(
  settings: http2.Settings,
  client: (port: number) => Promise<void>,
): Promise<{ sent: Buffer; seen: Seen[] }> {
  const seen: Seen[] = []
  const server = http2.createServer({ settings }, undefined)
  server.on('stream', (stream, headers, _flags, rawHeaders) => {
    const raw = rawHeaders as unknown as string[]
    seen.push({ head: head(headers[':method']!, headers[':path']!, raw), stream: stream.id! })
    stream.respond({ ':status': 200 })
    stream.resume().on('end', () => stream.end())
  })
  return { sent: await recorded(server, client), seen }
}

function connect(port: number, options: http2.ClientSessionOptions): http2.ClientHttp2Session {
  return http2.connect(`http://127.0.0.1:${port}`, options)
}

async function ask(
  session: http2.ClientHttp2Session,
  headers: http2.OutgoingHttpHeaders,
  { body, trailers }: { body?: string; trailers?: http2.OutgoingHttpHeaders } = {},
): Promise<void> {
  const stream = session.request(headers, {
    endStream: body === undefined,
    waitForTrailers: trailers !== undefined,
  })
  stream.on('wantTrailers', () => stream.sendTrailers(trailers!))
  if (body !== undefined) stream.end(body)
  await once(stream.resume(), 'close')
}

async function run(command: string, options: readonly string[]): Promise<void> {
  await promisify(execFile)(command, options)
}

const sizes = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 8 })
const TIME_BOX = timeBox(20_000, 1_500)
