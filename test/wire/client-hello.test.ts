import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import {
  type ClientHello,
  HELLO_BYTES_MAX,
  type Hello,
  parseClientHello,
  parseDtlsClientHello,
} from '../../src/wire/client-hello.ts'
import { BUDGET, helloPlans } from '../vectors/arbitraries.ts'
import {
  alpn,
  clientHello,
  extension,
  handshakeMessage,
  serverName,
  signatureAlgorithms,
  supportedGroups,
  supportedVersions,
  type Transport,
} from '../vectors/hello-builder.ts'
import { readVectors } from '../vectors/vector.ts'
import { changedBytes } from './changed-bytes.ts'

const vectors = readVectors().ja4.map(({ name, transport, handshake_hex }) => {
  return { name, transport, message: Buffer.from(handshake_hex, 'hex') }
})

test('what is in a hello is read, and nothing else of it', async () => {
  const message = clientHello({
    legacyVersion: 0x0301,
    sessionId: Buffer.alloc(32, 1),
    ciphers: [0x0a0a, 0x1301],
    extensions: [
      extension(0x1a1a),
      serverName('example.test'),
      alpn(Buffer.from('h2'), Buffer.of(0xff)),
      supportedVersions(0x2a2a, 0x0304),
      signatureAlgorithms(0x0403),
      supportedGroups(0x3a3a, 0x11ec, 0x001d),
      extension(0x1a1a, '00'),
    ],
  })
  assert.deepEqual(helloIn(Buffer.concat([message, Buffer.of(1, 0, 0)])), {
    legacyVersion: 0x0301,
    ciphers: [0x0a0a, 0x1301],
    extensions: [0x1a1a, 0x0000, 0x0010, 0x002b, 0x000d, 0x000a, 0x1a1a],
    supportedVersions: [0x2a2a, 0x0304],
    signatureAlgorithms: [0x0403],
    groups: [0x3a3a, 0x11ec, 0x001d],
    alpn: [Buffer.from('h2'), Buffer.of(0xff)],
    serverName: 'example.test',
    random: message.subarray(6, 38),
  })
})

const NOTHING = { supportedVersions: null, signatureAlgorithms: [], groups: [], alpn: [], serverName: null }

test('a hello that says less', async () => {
  for (const extensions of [null, []]) {
    const { random: _, ...said } = helloIn(clientHello({ ciphers: [], extensions }))
    assert.deepEqual(said, { legacyVersion: 0x0303, ciphers: [], extensions: [], ...NOTHING })
  }
})

/** Bodies that do not fit their extension, or say nothing: the extension stays, and the rest of the hello. */
const BROKEN: readonly (readonly [type: number, body: string])[] = [
  [0x0000, ''],
  [0x0000, '0000'],
  [0x0000, '0005000003'],
  [0x0000, '000400000262'],
  [0x0000, '0003000000'],
  [0x0000, '000401000161'],
  [0x000a, ''],
  [0x000a, '0002'],
  [0x000a, '0003001d00'],
  [0x000a, '0002001d00'],
  [0x000d, ''],
  [0x000d, '0002'],
  [0x000d, '00040403'],
  [0x000d, '0003040305'],
  [0x000d, '0002040305'],
  [0x0010, ''],
  [0x0010, '0003026832ff'],
  [0x0010, '0002026832'],
  [0x0010, '0004026832'],
  [0x0010, '0003036832'],
]

for (const [type, body] of BROKEN) {
  test(`a broken extension ${type.toString(16)}: "${body}"`, async () => {
    const message = clientHello({ extensions: [extension(type, body), extension(0x0017)] })
    const { random: _, ...said } = helloIn(message)
    const extensions = [type, 0x0017]
    assert.deepEqual(said, { legacyVersion: 0x0303, ciphers: [], extensions, ...NOTHING })
  })
}

test('broken versions are versions that name none, which is not the same as no extension', async () => {
  for (const body of ['', '00', '0303', '020304ff', '03030403']) {
    const hello = helloIn(clientHello({ extensions: [extension(0x002b, body)] }))
    assert.deepEqual(hello.supportedVersions, [], body)
  }
})

test('the name is the first host_name, as bytes, and the first of each extension speaks', async () => {
  const names = Buffer.from('0012' + '01000161' + '000003e9002e' + '00000161' + '0000' + '0162', 'hex')
  const twice = [extension(0x0000, names), serverName('second.test')]
  assert.equal(helloIn(clientHello({ extensions: twice })).serverName, '\u00e9\0.')

  const {
    alpn: protocols,
    supportedVersions: versions,
    signatureAlgorithms: algorithms,
    groups,
  } = helloIn(
    clientHello({
      extensions: [
        ...[alpn(), alpn(Buffer.from('h2'))],
        ...[supportedVersions(), supportedVersions(0x0304)],
        ...[signatureAlgorithms(), signatureAlgorithms(0x0403)],
        ...[supportedGroups(), supportedGroups(0x001d)],
      ],
    }),
  )
  assert.deepEqual([protocols, versions, algorithms, groups], [[], [], [], []])
})

const FAULTS: readonly (readonly [fault: string, what: string, message: Buffer, transport?: Transport])[] = [
  ['truncated', 'nothing', Buffer.alloc(0)],
  ['truncated', 'nothing', Buffer.alloc(0), 'dtls'],
  ['wrong-type', 'a ServerHello', handshakeMessage(2, Buffer.alloc(50))],
  ['wrong-type', 'a HelloVerifyRequest', handshakeMessage(3, Buffer.alloc(50), 'dtls'), 'dtls'],
  ['truncated', 'an empty body', handshakeMessage(1, Buffer.alloc(0))],
  ['odd-list', 'a cipher and a half', handshakeMessage(1, hello('0003130113', '0100', ''))],
  ['truncated', 'ciphers past the end', handshakeMessage(1, hello('0006130113', '', ''))],
  ['truncated', 'no compression methods', handshakeMessage(1, hello('00021301', '', ''))],
  ['truncated', 'half a length of extensions', handshakeMessage(1, hello('00021301', '0100', '00'))],
  ['truncated', 'extensions past the end', handshakeMessage(1, hello('00021301', '0100', '000500170000'))],
  [
    'truncated',
    'an extension past the others',
    handshakeMessage(1, hello('00021301', '0100', '000400170001')),
  ],
  [
    'trailing-data',
    'bytes after the extensions',
    handshakeMessage(1, hello('00021301', '0100', '000400170000ff')),
  ],
  ['too-long', 'one byte too many', handshakeMessage(1, Buffer.alloc(HELLO_BYTES_MAX + 1))],
  ['too-long', 'one byte too many', handshakeMessage(1, Buffer.alloc(HELLO_BYTES_MAX + 1), 'dtls'), 'dtls'],
  ['fragment', 'the first of two fragments', fragmented(0, 40), 'dtls'],
  ['fragment', 'the second of two fragments', fragmented(40, 4), 'dtls'],
]

for (const [fault, what, message, transport] of FAULTS) {
  test(`${fault}: ${what}${transport === 'dtls' ? ' (DTLS)' : ''}`, async () => {
    assert.deepEqual(parse(message, transport), { kind: 'malformed', fault })
  })
}

/** A hello's body from the ciphers on, in hex. */
function hello(ciphers: string, compression: string, extensions: string): Buffer {
  return Buffer.concat([Buffer.alloc(2 + 32 + 1), Buffer.from(ciphers + compression + extensions, 'hex')])
}

function fragmented(offset: number, length: number): Buffer {
  const message = clientHello({ ciphers: [0x1301] }, 'dtls')
  message.writeUIntBE(offset, 6, 3)
  message.writeUIntBE(length, 9, 3)
  return message
}

test('ignores a rest that is too short for an extension', async () => {
  for (const remnant of ['00', '0000', '000000']) {
    const block = `000${4 + remnant.length / 2}00170000${remnant}`
    assert.deepEqual(helloIn(handshakeMessage(1, hello('00021301', '0100', block))).extensions, [0x0017])
  }
})

test('a hello cut at any byte is malformed, and never throws', async () => {
  for (const { name, transport, message } of vectors) {
    assert.equal(parse(message, transport).kind, 'client-hello', name)
    for (let end = 0; end < message.length; end++) {
      assert.equal(parse(message.subarray(0, end), transport).kind, 'malformed', `${name}, cut at ${end}`)
    }
  }
})

test('no bytes make it throw, however close to a hello', async () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc
      .uint8Array({ maxLength: 200 })
      .map((body) => handshakeMessage(1, Buffer.concat([Buffer.alloc(35), body]))),
    changedBytes(vectors.map(({ message }) => message)),
  )
  const cases = fc.property(bytes, fc.constantFrom<Transport>('tcp', 'dtls'), (message, transport) => {
    const read = parse(message, transport)
    assert.ok(read.kind === 'client-hello' || read.fault.length > 0)
  })
  fc.assert(cases, BUDGET)
})

test('what was built is what is read', async () => {
  const cases = fc.property(helloPlans, fc.constantFrom<Transport>('tcp', 'dtls'), (plan, transport) => {
    const read = parse(clientHello(plan, transport), transport)
    assert(read.kind === 'client-hello')
    assert.equal(read.hello.legacyVersion, plan.legacyVersion)
    assert.deepEqual(read.hello.ciphers, plan.ciphers)
    assert.deepEqual(read.hello.extensions, plan.extensions?.map(({ type }) => type) ?? [])
  })
  fc.assert(cases, BUDGET)
})

function parse(message: Uint8Array, transport: Transport = 'tcp'): Hello {
  return transport === 'dtls' ? parseDtlsClientHello(message) : parseClientHello(message)
}

function helloIn(message: Buffer): ClientHello {
  const read = parseClientHello(message)
  assert(read.kind === 'client-hello', JSON.stringify(read))
  return read.hello
}
