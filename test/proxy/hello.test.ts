import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { test } from 'tap'
import { type Opening, type OpeningOptions, readOpening } from '../../src/proxy/connection/hello.ts'
import type { ProxySource } from '../../src/wire/proxy-protocol.ts'
import { alpn, clientHello, every, records, serverName } from '../vectors/hello-builder.ts'
import { headerV1, headerV2 } from './proxy-header.ts'

const OPTIONS: OpeningOptions = { isTls: true, timeoutMs: 5000, bytesMax: 65_536, proxyHeader: 'none' }

const HELLO = clientHello({
  ciphers: [0x1301, 0xc02b],
  extensions: [serverName('a.example.test'), alpn(Buffer.from('h2')), { type: 21, body: Buffer.alloc(300) }],
})

/** In one record, in several, and in records of a byte each. */
const HELLOS: readonly (readonly [title: string, bytes: Buffer])[] = [
  ['one record', Buffer.concat(records([HELLO]))],
  ['records of 100 bytes', Buffer.concat(records(every(100, HELLO)))],
  ['records of a byte', Buffer.concat(records(every(1, HELLO)))],
]

test('a hello is read however it is cut, and put back whole', async () => {
  for (const [title, bytes] of HELLOS) {
    for (let cut = 0; cut <= bytes.length; cut++) {
      const { opening, rest } = await open([bytes.subarray(0, cut), bytes.subarray(cut)])
      assert.equal(hostOf(opening), 'a.example.test', `${title}, cut at ${cut}`)
      assert.ok(rest.equals(bytes), `${title}, cut at ${cut}: put back`)
    }
    const { opening, rest } = await open(every(1, bytes))
    assert.equal(hostOf(opening), 'a.example.test', `${title}, byte for byte`)
    assert.ok(rest.equals(bytes))
  }
})

test('what came with the hello is put back behind it', async () => {
  const [, bytes] = HELLOS[0]!
  const { opening, rest } = await open([Buffer.concat([bytes, Buffer.from('early data')])])
  assert.equal(hostOf(opening), 'a.example.test')
  assert.equal(rest.toString('latin1', bytes.length), 'early data')
})

test('a PROXY header is taken away however it is cut, and what is behind it stays', async () => {
  const [, hello] = HELLOS[0]!
  for (const header of [
    headerV1('TCP4 192.0.2.1 192.0.2.2 7 443'),
    headerV2({ source: '192.0.2.1', port: 7 }),
  ]) {
    const bytes = Buffer.concat([header, hello])
    for (const proxyHeader of ['optional', 'required'] as const) {
      for (let cut = 0; cut <= header.length + 10; cut++) {
        const pieces = [bytes.subarray(0, cut), bytes.subarray(cut)]
        const { opening, rest, sources } = await open(pieces, { ...OPTIONS, proxyHeader })
        assert.equal(hostOf(opening), 'a.example.test', `cut at ${cut}`)
        assert.deepEqual(sources, [{ address: '192.0.2.1', port: 7 }], `cut at ${cut}`)
        assert.ok(rest.equals(hello), `cut at ${cut}: put back`)
      }
    }
    const { opening, sources } = await open(every(1, bytes), { ...OPTIONS, proxyHeader: 'required' })
    assert.deepEqual([hostOf(opening), sources.length], ['a.example.test', 1])
  }
})

test('without a PROXY header, what may have been one is read as what it is', async () => {
  const [, bytes] = HELLOS[0]!
  assert.equal(
    hostOf((await open(every(1, bytes), { ...OPTIONS, proxyHeader: 'optional' })).opening),
    'a.example.test',
  )
  const plain = await open(every(1, Buffer.from('PROPFIND / HTTP/1.1\r\n')), {
    ...OPTIONS,
    isTls: false,
    proxyHeader: 'optional',
  })
  assert.deepEqual([plain.opening, plain.rest.toString()], [{ kind: 'plain', isHttp2: false }, 'PROP'])
})

const FAILED: readonly [
  title: string,
  bytes: Buffer,
  reason: string,
  code: string,
  more?: Partial<OpeningOptions>,
][] = [
  ['HTTP', Buffer.from('GET / HTTP/1.1\r\n'), 'not-tls', 'http'],
  ['anything', Buffer.of(0x80, 0x2e, 1), 'not-tls', 'other'],
  ['an old version', Buffer.of(22, 2, 0), 'not-tls', 'other'],
  ['an unexpected PROXY header', headerV1('TCP4 192.0.2.1 192.0.2.2 7 443'), 'not-tls', 'http'],
  [
    'a PROXY header that is broken',
    headerV1('TCP4 a b 7 443'),
    'proxy-protocol',
    'address',
    { proxyHeader: 'optional' },
  ],
  [
    'a PROXY header that is missing',
    Buffer.concat(records([HELLO])),
    'proxy-protocol',
    'missing',
    { proxyHeader: 'required' },
  ],
  ['a hello that says it is too long', Buffer.from('160301000401ffffff', 'hex'), 'hello-too-long', 'cut'],
  [
    'more than was allowed',
    Buffer.concat(records([HELLO])).subarray(0, 250),
    'hello-too-long',
    'cut',
    { bytesMax: 200 },
  ],
]

test('what cannot be the beginning says why, at the first byte that shows it', async () => {
  for (const [title, bytes, reason, code, more] of FAILED) {
    for (const pieces of [[bytes], every(1, bytes)]) {
      const { opening } = await open(pieces, { ...OPTIONS, ...more })
      assert.deepEqual(opening, { kind: 'failed', reason, code }, title)
    }
  }
})

test('a hello that cannot be read is left to TLS', async () => {
  const odd = Buffer.concat(records([clientHello({ ciphers: [0x1301] })]))
  odd[odd.lastIndexOf(0x13) - 1] = 3 // an odd length of the cipher list
  const broken: readonly Buffer[] = [
    odd,
    Buffer.from('1503010002022f', 'hex'),
    Buffer.from('1603010000', 'hex'),
    Buffer.from('16030100040e000000', 'hex'),
  ]
  for (const bytes of broken) {
    const { opening, rest } = await open(every(1, bytes))
    assert.ok(opening.kind === 'tls' && opening.hello === null, bytes.toString('hex'))
    assert.ok(bytes.subarray(0, rest.length).equals(rest), 'put back as far as it had come')
  }
})

test('plain text shows HTTP/2 by its preface, and by nothing less', async () => {
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  const options = { ...OPTIONS, isTls: false }
  for (let cut = 0; cut <= preface.length; cut++) {
    const { opening, rest } = await open([preface.subarray(0, cut), preface.subarray(cut)], options)
    assert.deepEqual([opening, rest.toString()], [{ kind: 'plain', isHttp2: true }, preface.toString()])
  }
  for (const text of ['GET / HTTP/1.1\r\n', 'PRI * HTTP/1.1\r\n', 'PUT', 'P/', '\r\n', '\x16\x03\x01']) {
    assert.deepEqual((await open(every(1, Buffer.from(text, 'latin1')), options)).opening, {
      kind: 'plain',
      isHttp2: false,
    })
  }
})

test('distinguishes silent and slow clients from ones that leave', async () => {
  const [, bytes] = HELLOS[0]!
  const half = bytes.subarray(0, 50)
  for (const [pieces, code] of [
    [[], 'silent'],
    [[half], 'cut'],
  ] as const) {
    const timed = await open(pieces, { ...OPTIONS, timeoutMs: 20 }, 'wait')
    assert.deepEqual(timed.opening, { kind: 'failed', reason: 'hello-timeout', code })
    const plain = await open(
      pieces.length === 0 ? [] : [Buffer.from('PRI')],
      { ...OPTIONS, isTls: false, timeoutMs: 20 },
      'wait',
    )
    assert.deepEqual(plain.opening, { kind: 'failed', reason: 'header-timeout', code })
    for (const leave of ['end', 'destroy'] as const) {
      assert.deepEqual((await open(pieces, OPTIONS, leave)).opening, { kind: 'failed', reason: 'gone', code })
    }
  }
})

test('stops reading a client that is refused under its new address', async () => {
  const { duplex, opened, sources } = start(
    [headerV1('TCP4 192.0.2.1 192.0.2.2 7 443')],
    { ...OPTIONS, proxyHeader: 'required' },
    false,
  )
  while (sources.length === 0) await new Promise((resolve) => setImmediate(resolve))
  let isOpened = false
  opened.then(() => (isOpened = true))
  duplex.push(HELLOS[0]![1])
  await new Promise((resolve) => setTimeout(resolve, 10))
  assert.equal(isOpened, false)
  assert.deepEqual(
    [duplex.listenerCount('readable'), duplex.listenerCount('end'), duplex.listenerCount('close')],
    [0, 0, 0],
  )
})

function hostOf(opening: Opening): string | null {
  return opening.kind === 'tls' ? (opening.hello?.serverName ?? null) : null
}

interface Opened {
  readonly opening: Opening
  /** What the next reader would read. */
  readonly rest: Buffer
  readonly sources: readonly (ProxySource | null)[]
}

async function open(
  pieces: readonly Uint8Array[],
  options = OPTIONS,
  then: 'wait' | 'end' | 'destroy' = 'wait',
): Promise<Opened> {
  const { duplex, opened, sources } = start(pieces, options, true, then)
  const opening = await opened
  assert.equal(duplex.listenerCount('readable'), 0)
  const rest: Buffer[] = []
  for (let chunk = duplex.read(); chunk !== null; chunk = duplex.read()) rest.push(chunk)
  return { opening, rest: Buffer.concat(rest), sources }
}

/** A socket of which each read gives one piece. */
function start(
  pieces: readonly Uint8Array[],
  options: OpeningOptions,
  isWanted: boolean,
  then: 'wait' | 'end' | 'destroy' = 'wait',
) {
  const queue = pieces.filter((piece) => piece.length > 0)
  const duplex = new Duplex({
    highWaterMark: 0,
    read() {
      const next = queue.shift()
      if (next !== undefined) setImmediate(() => this.push(Buffer.from(next)))
      else if (then === 'end') this.push(null)
      else if (then === 'destroy') this.destroy()
    },
    write: (_chunk, _encoding, done) => done(),
  })
  const sources: (ProxySource | null)[] = []
  const proxied = (source: ProxySource | null) => {
    sources.push(source)
    return isWanted
  }
  const opened = new Promise<Opening>((resolve) =>
    readOpening(duplex as unknown as Socket, options, proxied, resolve),
  )
  return { duplex, opened, sources }
}
