import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { ja4, unresumedJa4 } from '../../src/fingerprint/ja4.ts'
import { stableKey } from '../../src/fingerprint/stable-key.ts'
import { parseClientHello } from '../../src/wire/client-hello.ts'
import { BUDGET, helloPlans } from '../vectors/arbitraries.ts'
import {
  alpn,
  clientHello,
  type Extension,
  extension,
  type HelloPlan,
  serverName,
  signatureAlgorithms,
  supportedVersions,
  type Transport,
} from '../vectors/hello-builder.ts'
import { readVectors } from '../vectors/vector.ts'

const LASTING: readonly Extension[] = [
  serverName('example.test'),
  alpn(Buffer.from('h2')),
  supportedVersions(0x0304),
  signatureAlgorithms(0x0403, 0x0804),
]
const TICKET = extension(0x0023)
const PADDING = extension(0x0015, Buffer.alloc(64))
const EARLY_DATA = extension(0x002a)
const COOKIE = extension(0x002c, '0002abcd')
const PRE_SHARED_KEY = extension(0x0029, Buffer.alloc(80))

function plan(...more: readonly Extension[]): HelloPlan {
  return { ciphers: [0x1301, 0xc02f], extensions: [...LASTING, ...more] }
}

const FIRST = plan(TICKET)

/** The same client on another occasion. */
const OCCASIONS: Readonly<Record<string, HelloPlan>> = {
  'a hello that is padded': plan(TICKET, PADDING),
  'a session resumed': plan(TICKET, PRE_SHARED_KEY),
  'a session resumed by a client that then sends no ticket': plan(PRE_SHARED_KEY),
  'a session resumed with early data': plan(TICKET, EARLY_DATA, PRE_SHARED_KEY),
  'the hello after a HelloRetryRequest': plan(TICKET, COOKIE),
  'all of it': plan(TICKET, EARLY_DATA, COOKIE, PADDING, PRE_SHARED_KEY),
}

for (const [what, other] of Object.entries(OCCASIONS)) {
  test(`${what} has another JA4 and the same key`, async () => {
    assert.notEqual(fingerprints(other).ja4, fingerprints(FIRST).ja4)
    assert.equal(fingerprints(other).key, fingerprints(FIRST).key)
  })
}

/** Another client. */
const OTHERS: Readonly<Record<string, HelloPlan>> = {
  'one extension more': plan(TICKET, extension(0x0017)),
  'no SNI': { ...FIRST, extensions: LASTING.slice(1) },
  'another protocol': {
    ...FIRST,
    extensions: [LASTING[0]!, alpn(Buffer.from('http/1.1')), ...LASTING.slice(2)],
  },
  'another cipher': { ...FIRST, ciphers: [0x1301] },
  'another version': {
    ...FIRST,
    extensions: [...LASTING.slice(0, 2), supportedVersions(0x0303), LASTING[3]!],
  },
  'another order of algorithms': {
    ...FIRST,
    extensions: [...LASTING.slice(0, 3), signatureAlgorithms(0x0804, 0x0403)],
  },
}

for (const [what, other] of Object.entries(OTHERS)) {
  test(`${what} is another key`, async () => {
    assert.notEqual(fingerprints(other).key, fingerprints(FIRST).key)
  })
}

test('the same hello over another transport is another key', async () => {
  assert.notEqual(fingerprints(FIRST, 'quic').key, fingerprints(FIRST, 'tcp').key)
})

test('a session that OpenSSL resumed has the key of the one it was kept from', async () => {
  const [kept, resumed] = ['-sess_out', '-sess_in'].map((option) => {
    const vector = readVectors().ja4.find(({ source }) => source.includes(option))
    const read = parseClientHello(Buffer.from(vector!.handshake_hex, 'hex'))
    assert(read.kind === 'client-hello')
    return { ja4: vector!.ja4, key: stableKey(read.hello, 'tcp') }
  })
  assert.notEqual(kept!.ja4, resumed!.ja4)
  assert.equal(kept!.key, resumed!.key)
})

test('a hello that resumes a session has another JA4, and that of the one before without it', async () => {
  const [kept, resumed] = ['-sess_out', '-sess_in'].map((option) => {
    const vector = readVectors().ja4.find(({ source }) => source.includes(option))
    const read = parseClientHello(Buffer.from(vector!.handshake_hex, 'hex'))
    assert(read.kind === 'client-hello')
    return { ja4: vector!.ja4, unresumed: unresumedJa4(read.hello, 'tcp') }
  })
  assert.equal(kept!.unresumed, null)
  assert.equal(resumed!.unresumed, kept!.ja4)
})

test('what a hello would be that resumes nothing: all else stays', async () => {
  for (const [added, rest] of [
    [[TICKET, PRE_SHARED_KEY], [TICKET]],
    [
      [TICKET, EARLY_DATA, PADDING, PRE_SHARED_KEY],
      [TICKET, PADDING],
    ],
    [[PRE_SHARED_KEY], []],
  ] as const)
    assert.equal(fingerprints(plan(...added)).unresumed, fingerprints(plan(...rest)).ja4)
  assert.equal(fingerprints(plan(TICKET, EARLY_DATA)).unresumed, null)
})

test('extensions that come and go change nothing, whatever else there is', async () => {
  const fleeting = fc.constantFrom(TICKET, PADDING, EARLY_DATA, COOKIE, PRE_SHARED_KEY)
  const places = fc.array(fc.tuple(fc.nat(1000), fleeting), { minLength: 1, maxLength: 5 })
  const cases = fc.property(helloPlans, places, (sent, added) => {
    const extensions = [...(sent.extensions ?? [])]
    for (const [place, more] of added) extensions.splice(place % (extensions.length + 1), 0, more)
    assert.equal(fingerprints({ ...sent, extensions }).key, fingerprints(sent).key)
  })
  fc.assert(cases, BUDGET)
})

test('a key can not be taken for a JA4', async () => {
  const cases = fc.property(helloPlans, fc.constantFrom<Transport>('tcp', 'quic'), (sent, transport) => {
    const found = fingerprints(sent, transport)
    assert.match(found.key, /^gs1-[tqd][0-9sd]\d[di]\d{4}[0-9A-Za-z]{2}-[0-9a-f]{12}-[0-9a-f]{12}$/)
    assert.match(found.ja4, /^[tqd][0-9sd]\d[di]\d{4}[0-9A-Za-z]{2}_[0-9a-f]{12}_[0-9a-f]{12}$/)
  })
  fc.assert(cases, BUDGET)
})

function fingerprints(sent: HelloPlan, transport: Transport = 'tcp') {
  const read = parseClientHello(clientHello(sent))
  assert(read.kind === 'client-hello')
  const unresumed: string | null = unresumedJa4(read.hello, transport)
  return { ja4: ja4(read.hello, transport), unresumed, key: stableKey(read.hello, transport) }
}
