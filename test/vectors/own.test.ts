import assert from 'node:assert/strict'
import { test } from 'tap'
import { DtlsSession } from '../../src/capture/dtls-session.ts'
import { Handshake } from '../../src/capture/handshake.ts'
import { ja4Forms } from '../../src/fingerprint/ja4.ts'
import { ja4h, ja4hRaw } from '../../src/fingerprint/ja4plus/ja4h.ts'
import { ja4s, ja4sRaw } from '../../src/fingerprint/ja4plus/ja4s.ts'
import { ja4x, ja4xRaw } from '../../src/fingerprint/ja4plus/ja4x.ts'
import { CLIENT_HELLO, parseClientHello, parseDtlsClientHello } from '../../src/wire/client-hello.ts'
import { HelloReader } from '../../src/wire/record.ts'
import type { RequestHead } from '../../src/wire/request-head.ts'
import { parseDtlsServerHello, parseServerHello, SERVER_HELLO } from '../../src/wire/server-hello.ts'
import { parseCertificate } from '../../src/wire/x509.ts'
import { buildVectors } from './build.ts'
import type { Transport } from './hello-builder.ts'
import { BUGS, RULES } from './rules.ts'
import { type HandshakeVector, readVectors, type StreamVector } from './vector.ts'

const vectors = readVectors()
const all = Object.values(vectors).flat()

for (const { name, transport, handshake_hex, ...vector } of vectors.ja4) {
  test(`ja4: ${name}`, async () => {
    const { ja4, ja4_r, ja4_o, ja4_ro } = vector
    assert.deepEqual(formsOf(transport, Buffer.from(handshake_hex, 'hex')), { ja4, ja4_r, ja4_o, ja4_ro })
  })
}

for (const { name, transport, handshake_hex, ...vector } of vectors.ja4s) {
  test(`ja4s: ${name}`, async () => {
    const message = Buffer.from(handshake_hex, 'hex')
    const read = transport === 'dtls' ? parseDtlsServerHello(message) : parseServerHello(message)
    assert(read.kind === 'server-hello', JSON.stringify(read))
    assert.equal(ja4sRaw(read.hello, transport), vector.ja4s_r)
    assert.equal(ja4s(read.hello, transport), vector.ja4s)
  })
}

for (const { name, method, version, headers, ...vector } of vectors.ja4h) {
  test(`ja4h: ${name}`, async () => {
    const rawHeaders = headers.flat().map(asSent)
    const head: RequestHead = { method, target: '/', version, rawHeaders }
    assert.equal(ja4hRaw(head), asSent(vector.ja4h_r))
    assert.equal(ja4h(head), vector.ja4h)
  })
}

for (const { name, der_hex, ...vector } of vectors.ja4x) {
  test(`ja4x: ${name}`, async () => {
    const read = parseCertificate(Buffer.from(der_hex, 'hex'))
    assert(read.kind === 'certificate', JSON.stringify(read))
    assert.equal(ja4xRaw(read.oids), vector.ja4x_r)
    assert.equal(ja4x(read.oids), vector.ja4x)
  })
}

for (const vector of vectors.framing) {
  test(`framing: ${vector.name}`, async () => {
    if ('stream_hex' in vector) readsStream(vector)
    else readsHandshake(vector)
  })
}

function readsStream({ side, stream_hex, fingerprint, fault }: StreamVector): void {
  const reader = new HelloReader(side === 'client' ? CLIENT_HELLO : SERVER_HELLO)
  for (const segment of stream_hex) {
    const read = reader.push(Buffer.from(segment, 'hex'))
    if (read.kind === 'fault') return assert.equal(read.fault, fault)
    if (read.kind === 'message') {
      const hello = side === 'client' ? parseClientHello(read.message) : parseServerHello(read.message)
      assert(hello.kind !== 'malformed', JSON.stringify(hello))
      const value =
        hello.kind === 'client-hello' ? ja4Forms(hello.hello, 'tcp').ja4 : ja4s(hello.hello, 'tcp')
      return assert.equal(value, fingerprint)
    }
  }
  assert.equal(fingerprint ?? fault, null, 'the stream ends first')
}

function readsHandshake({ transport, flights_hex, finding }: HandshakeVector): void {
  const handshake = new Handshake(transport, true)
  const session = new DtlsSession(handshake)
  for (const [from, hex] of flights_hex) {
    const bytes = Buffer.from(hex, 'hex')
    if (transport === 'dtls') session.push(from === 'client', bytes, 1)
    else handshake.message(from === 'client', bytes, 1)
  }
  const found = handshake.finding({ src: '', src_port: 0, dst: '', dst_port: 0 })
  if (found === null || finding === null) return assert.equal(found, finding)
  const { ja4, ja4_later, ja4s, ja4s_later, hello_retry_request, ja4x, ja4x_client } = found
  assert.deepEqual({ ja4, ja4_later, ja4s, ja4s_later, hello_retry_request, ja4x, ja4x_client }, finding)
}

test('every rule has a vector, every known mistake one that shows it, and every name is used once', async () => {
  const cited = new Set(all.map((vector) => vector.rule))
  const shown = new Set(all.map((vector) => vector.bug))
  assert.deepEqual(
    Object.keys(RULES).filter((rule) => !cited.delete(rule as keyof typeof RULES)),
    [],
  )
  assert.deepEqual(
    Object.keys(BUGS).filter((bug) => !shown.delete(bug as keyof typeof BUGS)),
    [],
  )
  assert.deepEqual([...cited, ...shown], [undefined], 'cited, but not in the list')
  for (const [file, cases] of Object.entries(vectors)) {
    const names = cases.map(({ name }: { readonly name: string }): string => name)
    assert.equal(new Set(names).size, names.length, file)
  }
})

test('the hash of the vectors is that of the specification', async () => {
  const example = vectors.ja4.find(({ rule }) => rule === 'hash')
  assert.equal(example?.ja4, 't13d1516h2_8daaf6152771_e5627efa2ab1') // as JA4.md has it
})

test('the files hold what the tables build', async () => {
  for (const [file, built] of Object.entries(buildVectors())) {
    const committed = vectors[file as keyof typeof vectors]
    // Through JSON, as the committed ones came; those recorded stand behind them.
    assert.deepEqual(
      committed.slice(0, built.length),
      JSON.parse(JSON.stringify(built)),
      `run "npm run vectors": ${file}`,
    )
  }
})

function formsOf(transport: Transport, message: Buffer) {
  const read = transport === 'dtls' ? parseDtlsClientHello(message) : parseClientHello(message)
  assert(read.kind === 'client-hello', JSON.stringify(read))
  return ja4Forms(read.hello, transport)
}

/** Text as the bytes it is sent in, a character each. */
function asSent(text: string): string {
  return Buffer.from(text).toString('latin1')
}
