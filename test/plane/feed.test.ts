import assert from 'node:assert/strict'
import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto'
import fc from 'fast-check'
import { test } from 'tap'
import {
  type Feed,
  type FeedContent,
  FeedFault,
  type FeedReason,
  feedKeyOf,
  makeFeedPrivateKey,
  openFeed,
  parseFeedKey,
  parseFeedPrivateKey,
  signFeed,
  succession,
} from '../../src/plane/feed.ts'

const key = parseFeedPrivateKey(makeFeedPrivateKey())
const other = parseFeedPrivateKey(makeFeedPrivateKey())
const keys = [feedKeyOf(key)]
const CREATED = '2026-11-21T10:00:00Z'
const SOFTWARE = [{ id: 'curl', name: 'curl', kind: 'tool' }]
const TYPE = 'application/vnd.gatehouse.signature-feed.v1+json'

test('what is signed is what is read', async () => {
  const feed = opened(signed({ version: 7, expires: '2027-01-01T00:00:00+01:00' }))
  assert.deepEqual(
    [feed.name, feed.version, feed.createdMs, feed.expiresMs],
    ['vendor', 7, Date.parse(CREATED), Date.parse('2026-12-31T23:00:00Z')],
  )
  assert.deepEqual(
    feed.software.map(({ id }) => id),
    ['curl'],
  )
  assert.equal(opened(signed({})).expiresMs, Number.POSITIVE_INFINITY)
  assert.deepEqual(opened(signed({ software: [] })).software, [])
})

test('an envelope is made by the letter of DSSE', async () => {
  const { payload, payloadType, signatures } = JSON.parse(signed({}))
  assert.equal(payloadType, TYPE)
  const bytes = Buffer.from(payload, 'base64')
  const expected = sign(null, Buffer.from(`DSSEv1 48 ${TYPE} ${bytes.length} ${bytes}`), key)
  assert.deepEqual(signatures, [{ keyid: keys[0]!.id, sig: expected.toString('base64') }])
})

test('an envelope of another maker: url-safe base64, no key id, members of its own, blanks', async () => {
  const envelope = JSON.parse(signed({}))
  const sig = envelope.signatures[0].sig.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
  for (const keyid of [undefined, '', null]) {
    const text = JSON.stringify({ ...envelope, note: 1, signatures: [{ keyid, sig, cert: null }] }, null, 4)
    assert.equal(opened(text).version, 1)
  }
})

test('one key of several is enough, on either side', async () => {
  const both = signFeed(content({}), [other, key])
  assert.equal(opened(both).version, 1)
  assert.equal(openFeed(Buffer.from(both), 'vendor', [feedKeyOf(other)]).version, 1)
  assert.equal(openFeed(Buffer.from(signed({})), 'vendor', [feedKeyOf(other), ...keys]).version, 1)
})

test('no trusted key signed it', async () => {
  const text = signFeed(content({}), [other])
  assert.deepEqual(faultOf(text), [
    'signature',
    `no key of the configuration has signed it: it is signed with ${feedKeyOf(other).id}`,
  ])
  // The id of a key proves nothing.
  const envelope = JSON.parse(text)
  envelope.signatures[0].keyid = keys[0]!.id
  assert.deepEqual(faultOf(JSON.stringify(envelope)), [
    'signature',
    'no key of the configuration has signed it: the signature is not of these bytes',
  ])
  assert.throws(() => openFeed(Buffer.from(signed({})), 'vendor', []), { code: 'FEED_SIGNATURE' })
})

test('refuses a signature of this key over something else', async () => {
  const envelope = JSON.parse(signed({}))
  const payload = Buffer.from(envelope.payload, 'base64')
  for (const bytes of [payload, Buffer.from(`DSSEv1 1 x ${payload.length} ${payload}`)]) {
    const signatures = [{ keyid: keys[0]!.id, sig: sign(null, bytes, key).toString('base64') }]
    assert.equal(faultOf(JSON.stringify({ ...envelope, signatures }))[0], 'signature')
  }
  assert.equal(faultOf(JSON.stringify({ ...envelope, payloadType: 'text/plain' }))[0], 'malformed')
})

test('every bit of the payload and of the signature counts', async () => {
  const envelope = JSON.parse(signed({}))
  const flipped = (text: string, bit: number) => {
    const bytes = Buffer.from(text, 'base64')
    bytes[bit >> 3]! ^= 1 << (bit & 7)
    return bytes.toString('base64')
  }
  const { payload, signatures } = envelope
  for (let bit = 0; bit < Buffer.from(payload, 'base64').length * 8; bit++)
    assert.equal(
      faultOf(JSON.stringify({ ...envelope, payload: flipped(payload, bit) }))[0],
      'signature',
      `${bit}`,
    )
  for (let bit = 0; bit < 512; bit++) {
    const [{ keyid, sig }] = signatures
    const text = JSON.stringify({ ...envelope, signatures: [{ keyid, sig: flipped(sig, bit) }] })
    assert.equal(faultOf(text)[0], 'signature', `${bit}`)
  }
})

test('cut at any byte it is refused, and never a crash', async () => {
  const text = signed({}).trimEnd()
  for (let end = 0; end < text.length; end++) assert.equal(faultOf(text.slice(0, end))[0], 'malformed')
})

test('whatever comes, the answer is a FeedFault', async () => {
  const refused = (bytes: Uint8Array) => assert.throws(() => openFeed(bytes, 'vendor', keys), FeedFault)
  fc.assert(fc.property(fc.uint8Array(), refused))
  fc.assert(fc.property(fc.json(), (text) => refused(Buffer.from(text))))
  const part = fc.oneof(fc.anything(), fc.constant(TYPE), fc.base64String())
  const signature = fc.oneof(part, fc.record({ keyid: part, sig: part }))
  const envelope = fc.record({
    payloadType: fc.constant(TYPE),
    payload: part,
    signatures: fc.oneof(part, fc.array(signature)),
  })
  const text = (value: unknown) => JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? 0 : each))
  fc.assert(fc.property(envelope, (value) => refused(Buffer.from(text(value)))))
})

test('invalid envelopes', async () => {
  const envelope = JSON.parse(signed({}))
  const [signature] = envelope.signatures
  const cases: readonly (readonly [unknown, RegExp])[] = [
    [null, /the envelope is empty/],
    [[], /payloadType is empty/],
    [{ ...envelope, payload: 1 }, /payload is not base64/],
    [{ ...envelope, payload: '$' }, /payload is not base64/],
    [{ ...envelope, signatures: {} }, /no signatures/],
    [{ ...envelope, signatures: [] }, /no signatures/],
    [{ ...envelope, signatures: [null] }, /a signature is empty/],
    [{ ...envelope, signatures: [{}] }, /sig is not base64/],
    [{ ...envelope, signatures: Array.from({ length: 17 }, () => signature) }, /17 signatures; at most 16/],
  ]
  for (const [value, expected] of cases) {
    const [reason, message] = faultOf(JSON.stringify(value))
    assert.equal(reason, 'malformed')
    assert.match(message, expected)
  }
  assert.equal(faultOf(Buffer.from([0xff]))[0], 'malformed')
})

test('a payload that is signed is not yet a good one', async () => {
  const good = { name: 'vendor', version: 1, created: CREATED, software: SOFTWARE }
  const cases: readonly (readonly [unknown, RegExp])[] = [
    [[], /expected a mapping/],
    [{}, /^needs `name`\nneeds `version`\nneeds `created`\nneeds `software`$/],
    [{ ...good, name: 'rival' }, /^name: is "rival"; this feed is "vendor"$/],
    [{ ...good, version: 0 }, /^version: is 0; expected a whole number from 1/],
    [{ ...good, version: 2 ** 53 }, /^version: /],
    [{ ...good, version: '2' }, /^version: /],
    [{ ...good, created: '2026-02-30T00:00:00Z' }, /^created: /],
    [{ ...good, expires: null }, /^expires: is empty/],
    [{ ...good, sofware: [] }, /^sofware: unknown field \(did you mean "software"\?\)$/],
    [
      { ...good, software: [bot('10.0.0.0/8')] },
      /"bot": .*ranges\.prefixes\.0: .*not on the public internet/,
    ],
    [
      { ...good, software: [bot('0.0.0.0/0')] },
      /"bot": .*ranges\.prefixes\.0: .*the widest allowed ranges are/,
    ],
    [{ ...good, software: null }, /^software: is empty; expected a list$/],
    [{ ...good, software: [{ id: 'x' }, { id: 'y', name: 1 }] }, /"x": 0: needs `name`\n.*"x": .*\n.*"y": /],
  ]
  for (const [value, expected] of cases) {
    const [reason, message] = faultOf(sealed(JSON.stringify(value)))
    assert.equal(reason, 'content', message)
    assert.match(message, expected)
  }
  assert.equal(faultOf(sealed('{"name":'))[0], 'malformed')
  assert.equal(faultOf(sealed(`{"name": ${'['.repeat(100_000)}`))[0], 'malformed')
  assert.equal(
    faultOf(sealed(JSON.stringify({ ...good, software: [[]] }).replace('[[]]', deep(50_000))))[0],
    'content',
  )
})

test('what may follow what', async () => {
  const now = Date.parse('2026-12-01T00:00:00Z')
  const five = opened(signed({ version: 5 }))
  assert.equal(succession(five, null, now), 'newer')
  assert.equal(succession(opened(signed({ version: 6 })), five, now), 'newer')
  assert.equal(succession(opened(signed({ version: 5 })), five, now), 'same')
  assert.equal(
    succession(opened(signFeed(content({ version: 5 }), [key, other])), five, now),
    'same',
    'signed with one more key',
  )
  refused(opened(signed({ version: 4 })), five, 'rolled-back', 'version 4 is offered, and version 5 was here')
  refused(
    opened(signed({ version: 5, software: [] })),
    five,
    'conflict',
    'version 5 was here with other content',
  )
  const late = opened(signed({ version: 6, expires: '2026-12-01T00:00:00Z' }))
  refused(late, five, 'expired', 'version 6 expired on 2026-12-01T00:00:00.000Z')
  assert.equal(succession(late, five, now - 1), 'newer')

  function refused(next: Feed, newest: Feed, reason: FeedReason, message: string): void {
    assert.throws(() => succession(next, newest, now), { reason, message })
  }
})

test('refuses to sign a feed that no gateway would accept', async () => {
  assert.throws(() => signFeed(content({ version: 0 }), [key]), { reason: 'content' })
  assert.throws(() => signFeed(content({ software: [{ id: 'x' }] }), [key]), { reason: 'content' })
  assert.throws(() => signFeed(content({}), []), { reason: 'malformed' })
})

test('keys', async () => {
  const text = 'ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=' // RFC 8032 §7.1, test 1
  const der = Buffer.concat([
    Buffer.from('302e020100300506032b657004220420', 'hex'),
    Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex'),
  ])
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  assert.equal(feedKeyOf(privateKey).text, text)
  assert.equal(parseFeedKey(text).id, feedKeyOf(privateKey).id)
  assert.match(parseFeedKey(text).id, /^21fe31dfa154a261626bf854046fd227$/)
  for (const bad of ['', text.slice(8), `${text}=`, text.slice(0, -3), `x${text}`, `${text}\n`])
    assert.throws(() => parseFeedKey(bad), { code: 'FEED_KEY_INVALID' })
  const { privateKey: rsa } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = rsa.export({ format: 'pem', type: 'pkcs8' }).toString()
  assert.throws(() => parseFeedPrivateKey(pem), { message: /for ec; expected ed25519/ })
  assert.throws(() => parseFeedPrivateKey('nothing'), { code: 'FEED_KEY_INVALID' })
})

function content(more: Partial<FeedContent>): FeedContent {
  return { name: 'vendor', version: 1, created: CREATED, expires: null, software: SOFTWARE, ...more }
}

/** One that claims these addresses. */
function bot(prefix: string): object {
  const ranges = { source: 'bot.test', date: '2026-11-21', prefixes: [prefix] }
  return { id: 'bot', name: 'Bot', kind: 'agent', category: 'crawler', verification: { ranges } }
}

function signed(more: Partial<FeedContent>): string {
  return signFeed(content(more), [key])
}

/** Any payload, signed as it should be. */
function sealed(payload: string): string {
  const head = `DSSEv1 ${TYPE.length} ${TYPE} ${Buffer.byteLength(payload)} `
  const sig = sign(null, Buffer.from(head + payload), key).toString('base64')
  return JSON.stringify({
    payloadType: TYPE,
    payload: Buffer.from(payload).toString('base64'),
    signatures: [{ sig }],
  })
}

function deep(levels: number): string {
  return '['.repeat(levels) + ']'.repeat(levels)
}

function opened(text: string): Feed {
  return openFeed(Buffer.from(text), 'vendor', keys)
}

function faultOf(text: string | Buffer): [FeedReason, string] {
  try {
    openFeed(Buffer.from(text), 'vendor', keys)
  } catch (error) {
    assert.ok(error instanceof FeedFault, String(error))
    return [error.reason, error.message]
  }
  throw new Error('it was taken')
}
