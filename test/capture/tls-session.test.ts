import assert from 'node:assert/strict'
import type tls from 'node:tls'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { test } from 'tap'
import type { TlsFinding } from '../../src/capture/finding.ts'
import { Handshake } from '../../src/capture/handshake.ts'
import { KeyLog } from '../../src/capture/key-log.ts'
import { suiteOf } from '../../src/capture/tls-cipher.ts'
import { TlsSession } from '../../src/capture/tls-session.ts'
import { ja4x } from '../../src/fingerprint/ja4plus/ja4x.ts'
import { parseCertificate } from '../../src/wire/x509.ts'
import {
  CERTIFICATE_DER,
  type Chunk,
  EARLY_DATA,
  IDENTITY,
  type Recording,
  record,
  recordOpenssl,
  recordResumption,
} from './recorded-tls.ts'
import { skipped } from '../e2e/programs.ts'
import { timeBox } from '../time-box.ts'

const skip = skipped('openssl')

interface Seen {
  readonly finding: TlsFinding | null
  readonly request: Buffer
  readonly response: Buffer
  readonly done: boolean
  /** How many chunks were read before it was done. */
  readonly read: number
}

/** The chunks as a capture in which each is a frame, counted from 1. */
function see(chunks: readonly Chunk[], keyLog: string): Seen {
  const keys = new KeyLog()
  keys.add(keyLog)
  keys.end()
  const handshake = new Handshake('tcp', true)
  const data: Buffer[][] = [[], []]
  const session = new TlsSession(keys, handshake, (fromClient, bytes) => {
    data[fromClient ? 0 : 1]!.push(Buffer.from(bytes))
  })
  let read = 0
  for (const [i, { fromClient, bytes }] of chunks.entries()) {
    if (session.done) break
    // A caller's buffer holds other bytes once the call is over.
    const borrowed = Buffer.from(bytes)
    session.push(fromClient, borrowed, i + 1)
    borrowed.fill(0xee)
    read++
  }
  return {
    finding: handshake.finding({ src: 'client', src_port: 1, dst: 'server', dst_port: 2 }),
    request: Buffer.concat(data[0]!),
    response: Buffer.concat(data[1]!),
    done: session.done,
    read,
  }
}

function seesAll({ chunks, keyLog, request, response }: Recording): Seen {
  const seen = see(chunks, keyLog)
  assert.ok(seen.request.equals(request), `request: ${seen.request.length} of ${request.length} bytes`)
  assert.ok(seen.response.equals(response), `response: ${seen.response.length} of ${response.length} bytes`)
  return seen
}

const certificate = parseCertificate(CERTIFICATE_DER)
assert.equal(certificate.kind, 'certificate')
const JA4X = certificate.kind === 'certificate' ? [ja4x(certificate.oids)] : []

const SUITES: readonly (readonly [version: tls.SecureVersion, name: string, cipher: number])[] = [
  ['TLSv1.3', 'TLS_AES_128_GCM_SHA256', 0x1301],
  ['TLSv1.3', 'TLS_AES_256_GCM_SHA384', 0x1302],
  ['TLSv1.3', 'TLS_CHACHA20_POLY1305_SHA256', 0x1303],
  ['TLSv1.3', 'TLS_AES_128_CCM_SHA256', 0x1304],
  ['TLSv1.3', 'TLS_AES_128_CCM_8_SHA256', 0x1305],
  ['TLSv1.2', 'ECDHE-ECDSA-AES128-GCM-SHA256', 0xc02b],
  ['TLSv1.2', 'ECDHE-ECDSA-AES256-GCM-SHA384', 0xc02c],
  ['TLSv1.2', 'ECDHE-ECDSA-CHACHA20-POLY1305', 0xcca9],
  ['TLSv1.2', 'ECDHE-ECDSA-AES128-CCM', 0xc0ac],
  ['TLSv1.2', 'ECDHE-ECDSA-AES256-CCM', 0xc0ad],
  ['TLSv1.2', 'ECDHE-ECDSA-AES128-CCM8', 0xc0ae],
  ['TLSv1.2', 'ECDHE-ECDSA-AES256-CCM8', 0xc0af],
  ['TLSv1.2', 'PSK-AES128-GCM-SHA256', 0x00a8],
  ['TLSv1.2', 'PSK-AES256-GCM-SHA384', 0x00a9],
  ['TLSv1.2', 'DHE-PSK-AES256-CCM', 0xc0a7],
  ['TLSv1.2', 'PSK-AES128-CCM8', 0xc0a8],
  ['TLSv1.2', 'DHE-PSK-CHACHA20-POLY1305', 0xccad],
]

for (const [version, name, cipher] of SUITES) {
  test(`${version} ${name}: what the applications wrote is seen, byte by byte`, async () => {
    const psk = name.includes('PSK')
    // Node wants a suite of TLS 1.2 beside those of 1.3; CCM_8 is below the security level it begins with.
    const ciphers = `${name}:PSK-AES128-GCM-SHA256:@SECLEVEL=0`
    const both = { minVersion: version, maxVersion: version, ciphers }
    const key = Buffer.alloc(32, 7)
    const ALPNProtocols = ['http/1.1']
    const seen = seesAll(
      await record({
        server: { ...both, ALPNProtocols, dhparam: 'auto', ...(psk ? { pskCallback: () => key } : {}) },
        client: {
          ...both,
          ALPNProtocols,
          ...(psk
            ? { pskCallback: () => ({ psk: key, identity: 'x' }), checkServerIdentity: () => undefined }
            : {}),
        },
      }),
    )
    assert.equal(seen.finding?.ja4s?.slice(8, 12), cipher.toString(16).padStart(4, '0'))
    assert.deepEqual(seen.finding?.ja4x, psk ? [] : JA4X)
    assert.equal(seen.done, false)
  })
}

test('a suite is what its registered name says', async () => {
  // https://www.iana.org/assignments/tls-parameters/
  const named: readonly (readonly [number, string])[] = [
    [0x009c, 'RSA_WITH_AES_128_GCM_SHA256'],
    [0x009f, 'DHE_RSA_WITH_AES_256_GCM_SHA384'],
    [0x00aa, 'DHE_PSK_WITH_AES_128_GCM_SHA256'],
    [0x00ad, 'RSA_PSK_WITH_AES_256_GCM_SHA384'],
    [0xc02f, 'ECDHE_RSA_WITH_AES_128_GCM_SHA256'],
    [0xc030, 'ECDHE_RSA_WITH_AES_256_GCM_SHA384'],
    [0xc032, 'ECDH_RSA_WITH_AES_256_GCM_SHA384'],
    [0xc09c, 'RSA_WITH_AES_128_CCM'],
    [0xc09f, 'DHE_RSA_WITH_AES_256_CCM'],
    [0xc0a2, 'DHE_RSA_WITH_AES_128_CCM_8'],
    [0xc0a9, 'PSK_WITH_AES_256_CCM_8'],
    [0xc0ab, 'PSK_DHE_WITH_AES_256_CCM_8'],
    [0xcca8, 'ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256'],
    [0xccae, 'RSA_PSK_WITH_CHACHA20_POLY1305_SHA256'],
    [0xd001, 'ECDHE_PSK_WITH_AES_128_GCM_SHA256'],
    [0xd002, 'ECDHE_PSK_WITH_AES_256_GCM_SHA384'],
    [0xd003, 'ECDHE_PSK_WITH_AES_128_CCM_8_SHA256'],
    [0xd005, 'ECDHE_PSK_WITH_AES_128_CCM_SHA256'],
  ]
  for (const [cipher, name] of named) {
    const suite = suiteOf(cipher)
    assert.equal(suite?.isTls13, false, name)
    assert.equal(suite?.hash, name.endsWith('SHA384') ? 'sha384' : 'sha256', name)
    assert.equal(suite?.aead.keyBytes, name.includes('AES_128') ? 16 : 32, name)
    assert.equal(suite?.aead.tagBytes, name.includes('CCM_8') ? 8 : 16, name)
    assert.equal(suite?.aead.explicitNonceBytes, name.includes('CHACHA20') ? 0 : 8, name)
  }
  for (const cipher of [0x0000, 0x002f, 0xc013, 0xc027, 0x00ff, 0x1306, 0xd004])
    assert.equal(suiteOf(cipher), null)
})

const MUTUAL = { ...IDENTITY, requestCert: true, rejectUnauthorized: false }
const TLS_1_2 = { maxVersion: 'TLSv1.2' } as const
const tls13 = await record({})
const tls12 = await record({ server: TLS_1_2 })

test('a client certificate', async () => {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const seen = seesAll(await record({ server: { ...MUTUAL, maxVersion: version }, client: IDENTITY }))
    assert.deepEqual(seen.finding?.ja4x, JA4X)
    assert.deepEqual(seen.finding?.ja4x_client, JA4X)
  }
})

test('a session that goes on shows no certificate, and can be read', async () => {
  for (const server of [{}, TLS_1_2]) {
    const recording = await recordResumption({ server })
    assert.deepEqual(seesAll(recording).finding?.ja4x, [])
    assert.ok(see(recording.chunks, '').done)
  }
})

test('HelloRetryRequest: both hellos of both sides, with keys and without', async () => {
  const recording = await record({ server: { ecdhCurve: 'P-384' }, client: { ecdhCurve: 'X25519:P-384' } })
  for (const seen of [seesAll(recording), see(recording.chunks, '')]) {
    assert.equal(seen.finding?.hello_retry_request, true)
    assert.equal(seen.finding?.ja4_later.length, 1)
    assert.equal(seen.finding?.ja4s_later.length, 1)
  }
  // Some captures keep only what the client sent.
  const oneSided = see(
    recording.chunks.filter((chunk) => chunk.fromClient),
    recording.keyLog,
  )
  assert.equal(oneSided.finding?.ja4_later.length, 1)
  assert.equal(oneSided.finding?.ja4s, null)
})

test('a renegotiation within TLS 1.2 changes all keys', async () => {
  const seen = seesAll(
    await record({
      server: TLS_1_2,
      midway: (socket) => promisify(socket.renegotiate.bind(socket))({ rejectUnauthorized: false }),
    }),
  )
  assert.equal(seen.finding?.ja4_later.length, 1)
  assert.deepEqual(seen.finding?.ja4x, JA4X)
})

test('CBC and old versions: the handshake is read as far as it is in the clear', async () => {
  const old = { minVersion: 'TLSv1', ciphers: 'ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0' } as const
  for (const maxVersion of ['TLSv1', 'TLSv1.1', 'TLSv1.2'] as const) {
    const { chunks, keyLog } = await record({
      server: { ...MUTUAL, ...old, maxVersion },
      client: { ...IDENTITY, ...old },
    })
    const seen = see(chunks, keyLog)
    assert.equal(seen.finding?.ja4s?.slice(8, 12), 'c009')
    assert.deepEqual([seen.finding?.ja4x, seen.finding?.ja4x_client], [JA4X, JA4X])
    assert.ok(seen.done)
    assert.ok(seen.read < chunks.length)
  }
})

test('without keys TLS 1.3 is done at the ServerHello', async () => {
  const seen = see(tls13.chunks, '# empty')
  assert.equal(seen.read, 2)
  assert.ok(seen.done)
  assert.equal(seen.finding?.frame, 1)
  assert.equal(seen.finding?.ja4s?.slice(0, 3), 't13')
})

test('without keys TLS 1.2 is done when both sides encrypt', async () => {
  const { chunks } = await record({ server: { ...MUTUAL, ...TLS_1_2 }, client: IDENTITY })
  const seen = see(chunks, tls12.keyLog)
  assert.deepEqual([seen.finding?.ja4x, seen.finding?.ja4x_client], [JA4X, JA4X])
  assert.ok(seen.done)
  assert.ok(seen.read <= 4)
})

const tls13Lines = (test: (label: string) => boolean): string =>
  tls13.keyLog
    .split('\n')
    .filter((line) => test(line.split(' ')[0]!))
    .join('\n')

test('a secret that is missing ends what it would have opened', async () => {
  const blindToClient = see(
    tls13.chunks,
    tls13Lines((label) => !label.startsWith('CLIENT_HANDSHAKE')),
  )
  assert.equal(blindToClient.request.length, 0)
  assert.ok(blindToClient.response.equals(tls13.response))
  const blindToServer = see(
    tls13.chunks,
    tls13Lines((label) => !label.startsWith('SERVER_HANDSHAKE')),
  )
  assert.ok(blindToServer.request.equals(tls13.request))
  assert.equal(blindToServer.response.length, 0)
  const handshakeOnly = see(
    tls13.chunks,
    tls13Lines((label) => label.includes('_HANDSHAKE_')),
  )
  assert.deepEqual(handshakeOnly.finding?.ja4x, JA4X)
  assert.ok(handshakeOnly.done)
})

test('with wrong secrets nothing opens, and it is done', async () => {
  for (const { chunks, keyLog } of [tls13, tls12]) {
    const wrong = keyLog.replaceAll(/ ([0-9a-f]+)$/gm, (secret) => secret.replaceAll('a', 'b'))
    const seen = see(chunks, wrong)
    assert.equal(seen.request.length + seen.response.length, 0)
    assert.notEqual(seen.finding?.ja4s, null)
  }
})

test('the keys change: KeyUpdate from both sides', { skip }, async () => {
  const { chunks, keyLog } = await recordOpenssl({ lines: ['one', 'K', 'two', 'K', 'K', 'three'] })
  const seen = see(chunks, keyLog)
  assert.equal(seen.request.toString(), 'one\ntwo\nthree\n')
  assert.equal(seen.response.toString(), 'one\ntwo\nthree\n')
})

test('early data', { skip }, async () => {
  const { chunks, keyLog } = await recordOpenssl({ session: 'known', lines: ['hello'] })
  const seen = see(chunks, keyLog)
  assert.equal(seen.request.toString(), `${EARLY_DATA}hello\n`)
  assert.equal(see(clientFirst(chunks), keyLog).request.toString(), `${EARLY_DATA}hello\n`)
  const unreadable = see(chunks, keyLog.replace('CLIENT_EARLY', 'CLIENT_LATE'))
  assert.equal(unreadable.request.toString(), 'hello\n')
  assert.ok(see(chunks, '').done)
})

test('early data that the server rejects is passed over: the client sends it again', { skip }, async () => {
  const retry = { serverArguments: ['-groups', 'P-384'], clientArguments: ['-groups', 'X25519:P-384'] }
  for (const settings of [{}, retry]) {
    const { chunks, keyLog } = await recordOpenssl({ session: 'unknown', lines: ['hello'], ...settings })
    assert.match(keyLog, /CLIENT_EARLY/)
    for (const order of [chunks, clientFirst(chunks), serverFirst(chunks)]) {
      const seen = see(order, keyLog)
      assert.equal(seen.request.toString(), 'hello\n')
      assert.equal(seen.response.toString(), 'hello\n')
      assert.deepEqual(seen.finding?.ja4x, JA4X)
    }
  }
})

const clientFirst = (chunks: readonly Chunk[]): Chunk[] => sides(chunks, true)
const serverFirst = (chunks: readonly Chunk[]): Chunk[] => sides(chunks, false)

function sides(chunks: readonly Chunk[], clientFirst: boolean): Chunk[] {
  return [
    ...chunks.filter((c) => c.fromClient === clientFirst),
    ...chunks.filter((c) => c.fromClient !== clientFirst),
  ]
}

test('the two directions may come in any order, within a limit', async () => {
  const short = { request: Buffer.from('GET / HTTP/1.1\r\n\r\n'), response: Buffer.alloc(20_000, 'x') }
  for (const server of [MUTUAL, { ...MUTUAL, ...TLS_1_2 }]) {
    const recording = await record({ server, client: IDENTITY, ...short })
    const usual = seesAll(recording)
    for (const order of [clientFirst, serverFirst]) {
      const { finding } = seesAll({ ...recording, chunks: order(recording.chunks) })
      assert.deepEqual({ ...finding, frame: 1 }, usual.finding)
    }
    const clear = see(recording.chunks, '').finding
    assert.deepEqual(see(clientFirst(recording.chunks), '').finding, clear)
  }
})

test('the frame is the one that completed the hello', async () => {
  const bytewise = tls12.chunks.slice(0, 2).flatMap(split(1))
  assert.equal(see(bytewise, '').finding?.frame, tls12.chunks[0]!.bytes.length)
})

test('application data comes with the frame that completed its record', async () => {
  const keys = new KeyLog()
  keys.add(tls12.keyLog)
  const frames: number[] = []
  const session = new TlsSession(keys, new Handshake('tcp', true), (_, __, frame) => frames.push(frame))
  for (const [i, { fromClient, bytes }] of tls12.chunks.entries()) session.push(fromClient, bytes, i + 1)
  assert.ok(frames.every((frame, i) => frame >= (frames[i - 1] ?? 4) && frame <= tls12.chunks.length))
})

function split(length: number): (chunk: Chunk) => Chunk[] {
  return ({ fromClient, bytes }) =>
    Array.from({ length: Math.ceil(bytes.length / length) }, (_, i) => {
      return { fromClient, bytes: bytes.subarray(i * length, (i + 1) * length) }
    })
}

test('any cuts give the same', async () => {
  for (const recording of [tls12, tls13]) {
    const usual = seesAll(recording).finding
    seesAll({ ...recording, chunks: recording.chunks.flatMap(split(1)) })
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 20_000 }), { minLength: 1 }), (lengths) => {
        const chunks = recording.chunks.flatMap((chunk, i) => split(lengths[i % lengths.length]!)(chunk))
        const { finding } = seesAll({ ...recording, chunks })
        assert.deepEqual({ ...finding, frame: 1 }, usual)
      }),
      timeBox(100, 1_000),
    )
  }
})

test('a gap ends one direction, and leaves the other', async () => {
  for (const { chunks, keyLog, request, response } of [tls12, tls13]) {
    const keys = new KeyLog()
    keys.add(keyLog)
    const bytes = [0, 0]
    const session = new TlsSession(keys, new Handshake('tcp', true), (fromClient, data) => {
      bytes[fromClient ? 0 : 1]! += data.length
    })
    let hasGap = false
    for (const [i, chunk] of chunks.flatMap(split(1)).entries()) {
      // After the first of the two records of the request, wherever the chunks of the recording end.
      if (!hasGap && bytes[0]! > 0) {
        session.gap(true)
        hasGap = true
      }
      session.push(chunk.fromClient, chunk.bytes, i)
    }
    assert.ok(bytes[0]! > 0 && bytes[0]! < request.length)
    assert.equal(bytes[1], response.length)
    assert.ok(!session.done)
    session.gap(false)
    assert.ok(session.done)
  }
})

test('a gap in the hello is the end', async () => {
  const session = new TlsSession(new KeyLog(), new Handshake('tcp', true), () => {})
  session.push(true, tls13.chunks[0]!.bytes.subarray(0, 100), 1)
  session.gap(true)
  assert.ok(session.done)
})

test('gives up at once if the first bytes are not TLS', async () => {
  const later = tls12.chunks.filter((chunk) => chunk.fromClient).slice(1)
  for (const chunks of [later, [{ fromClient: true, bytes: Buffer.from('GET / HTTP/1.1\r\n\r\n') }]]) {
    const seen = see(chunks, tls12.keyLog)
    assert.equal(seen.finding, null)
    assert.ok(seen.done)
    assert.equal(seen.read, 1)
  }
})

test('what waits for the other side is limited', async () => {
  const applicationData = Buffer.concat([Buffer.from('1703032000', 'hex'), Buffer.alloc(0x2000)])
  for (const keyLog of ['', tls13.keyLog]) {
    for (const fromClient of [true, false]) {
      const hello = fromClient ? tls13.chunks.slice(0, 1) : []
      const flood = Array.from({ length: 100 }, () => ({ fromClient, bytes: applicationData }))
      const seen = see([...hello, ...flood], keyLog)
      assert.ok(seen.done)
      assert.ok(seen.read < 12)
    }
  }
  const tiny = Buffer.from('170303000100', 'hex')
  const seen = see(
    Array.from({ length: 10_000 }, () => ({ fromClient: false, bytes: tiny })),
    '',
  )
  assert.ok(seen.done)
  assert.ok(seen.read < 500)
})

test('mutated records never make it throw, and what it gives out was sealed', async () => {
  const change = fc.record({
    at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    to: fc.nat(255),
  })
  for (const { chunks, keyLog, request, response } of [tls12, tls13]) {
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 5 }), fc.boolean(), (changes, early) => {
        const mutated = chunks.map(({ fromClient, bytes }) => ({ fromClient, bytes: Buffer.from(bytes) }))
        for (const { at, to } of changes) {
          const { bytes } = mutated[Math.floor((at * 1000) % (early ? 3 : mutated.length))]!
          bytes[Math.floor(at * bytes.length)] = to
        }
        const seen = see(mutated, keyLog)
        assert.ok(seen.request.equals(request.subarray(0, seen.request.length)))
        assert.ok(seen.response.equals(response.subarray(0, seen.response.length)))
      }),
      timeBox(100, 2_000),
    )
  }
})

test('arbitrary bytes never make it throw', async () => {
  const record = fc
    .tuple(fc.integer({ min: 19, max: 25 }), fc.uint8Array({ maxLength: 80 }))
    .map(([type, body]) => Buffer.from([type, 3, 3, 0, body.length, ...body]))
  const bytes = fc.oneof(
    record,
    fc.uint8Array().map((body) => Buffer.from(body)),
  )
  const hello = fc.constantFrom(tls13.chunks[0]!, tls13.chunks[1]!, tls12.chunks[1]!)
  const chunk = fc.oneof(hello, fc.record({ fromClient: fc.boolean(), bytes }))
  fc.assert(
    fc.property(fc.array(chunk), (chunks) => {
      see(chunks, tls13.keyLog + tls12.keyLog)
    }),
    timeBox(100, 2_000),
  )
})
