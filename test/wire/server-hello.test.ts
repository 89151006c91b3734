import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { test } from 'tap'
import { parseDtlsServerHello, parseServerHello, type ServerHelloRead } from '../../src/wire/server-hello.ts'
import { BUDGET } from '../vectors/arbitraries.ts'
import { alpn, extension, handshakeMessage, serverHello, type Transport } from '../vectors/hello-builder.ts'
import { readVectors } from '../vectors/vector.ts'
import { changedBytes } from './changed-bytes.ts'

const vectors = readVectors().ja4s.map(({ name, transport, handshake_hex }) => {
  return { name, transport, message: Buffer.from(handshake_hex, 'hex') }
})

test('what is in an answer is read', async () => {
  const plan = {
    legacyVersion: 0x0302,
    cipher: 0xc02f,
    extensions: [extension(0x2a2a), alpn(Buffer.from('h2'))],
  }
  const message = serverHello(plan)
  assert.deepEqual(parse(Buffer.concat([message, Buffer.of(11, 0)])), {
    kind: 'server-hello',
    hello: {
      legacyVersion: 0x0302,
      cipher: 0xc02f,
      extensions: [0x2a2a, 0x0010],
      selectedVersion: null,
      alpn: Buffer.from('h2'),
      helloRetryRequest: false,
      random: message.subarray(6, 38),
    },
  })
})

test('a HelloRetryRequest is told by the whole of its random', async () => {
  const random = createHash('sha256').update('HelloRetryRequest').digest()
  assert.equal(isRetry(random), true)
  for (let at = 0; at < random.length; at++) {
    const other = Buffer.from(random)
    other[at]! ^= 1
    assert.equal(isRetry(other), false, `byte ${at} is another one`)
  }
})

function isRetry(random: Buffer): boolean {
  const read = parse(serverHello({ random }))
  assert(read.kind === 'server-hello')
  return read.hello.helloRetryRequest
}

test('what does not fit its extension says nothing, and the first of each speaks', async () => {
  for (const [bodies, selected, protocol] of [
    [['2b', '03'], null, null],
    [['2b', '030403'], null, null],
    [['2b', ''], null, null],
    [['2b', '0304', '2b', '0303'], 0x0304, null],
    [['10', '0003026832', '10', '0003026833'], null, 'h2'],
    [['10', '0002026832'], null, null],
    [['10', '0000'], null, null],
    [['10', ''], null, null],
  ] as const) {
    const extensions = []
    for (let i = 0; i < bodies.length; i += 2)
      extensions.push(extension(Number(`0x${bodies[i]}`), bodies[i + 1]!))
    const read = parse(serverHello({ extensions }))
    assert(read.kind === 'server-hello')
    assert.equal(read.hello.selectedVersion, selected, bodies.join(' '))
    assert.equal(read.hello.alpn && Buffer.from(read.hello.alpn).toString(), protocol, bodies.join(' '))
    assert.equal(read.hello.extensions.length, extensions.length)
  }
})

const FAULTS: readonly (readonly [fault: string, what: string, message: Buffer, transport?: Transport])[] = [
  ['truncated', 'nothing', Buffer.alloc(0)],
  ['truncated', 'nothing', Buffer.alloc(0), 'dtls'],
  ['wrong-type', 'a ClientHello', handshakeMessage(1, Buffer.alloc(50))],
  ['wrong-type', 'a ClientHello', handshakeMessage(1, Buffer.alloc(50), 'dtls'), 'dtls'],
  ['truncated', 'no compression method', handshakeMessage(2, Buffer.alloc(37))],
  ['truncated', 'half a length of extensions', handshakeMessage(2, Buffer.alloc(39))],
  ['trailing-data', 'bytes after no extensions', handshakeMessage(2, Buffer.alloc(41))],
  ['fragment', 'the first of two fragments', fragmented(0, 30), 'dtls'],
  ['fragment', 'the second of two fragments', fragmented(30, 10), 'dtls'],
]

for (const [fault, what, message, transport] of FAULTS) {
  test(`${fault}: ${what}${transport === 'dtls' ? ' (DTLS)' : ''}`, async () => {
    assert.deepEqual(parse(message, transport), { kind: 'malformed', fault })
  })
}

function fragmented(offset: number, length: number): Buffer {
  const message = serverHello({}, 'dtls')
  message.writeUIntBE(offset, 6, 3)
  message.writeUIntBE(length, 9, 3)
  return message
}

test('an answer cut at any byte is malformed, and never throws', async () => {
  for (const { name, transport, message } of vectors) {
    assert.equal(parse(message, transport).kind, 'server-hello', name)
    for (let end = 0; end < message.length; end++) {
      assert.equal(parse(message.subarray(0, end), transport).kind, 'malformed', `${name}, cut at ${end}`)
    }
  }
})

test('no bytes make it throw, however close to an answer', async () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    changedBytes(vectors.map(({ message }) => message)),
  )
  const cases = fc.property(bytes, fc.constantFrom<Transport>('tcp', 'dtls'), (message, transport) => {
    const read = parse(message, transport)
    assert.ok(read.kind === 'server-hello' || read.fault.length > 0)
  })
  fc.assert(cases, BUDGET)
})

function parse(message: Uint8Array, transport: Transport = 'tcp'): ServerHelloRead {
  return transport === 'dtls' ? parseDtlsServerHello(message) : parseServerHello(message)
}
