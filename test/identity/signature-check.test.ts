import assert from 'node:assert/strict'
import { type KeyObject, sign } from 'node:crypto'
import fc from 'fast-check'
import { test } from 'tap'
import { PAYMENT_TAGS } from '../../src/classify/verdict/proof.ts'
import { FailureBudget } from '../../src/identity/verify/failure-budget.ts'
import type { InquiryResult } from '../../src/identity/keys/inquiry.ts'
import { KeyBook } from '../../src/identity/keys/key-book.ts'
import {
  type SentRequest,
  type Checked,
  type HostOwner,
  isSigned,
  SignatureCheck,
} from '../../src/identity/verify/signature-check.ts'
import { SIGNATURE_FAULTS } from '../../src/identity/verify/signature-faults.ts'
import {
  bareAgent,
  FORGERIES,
  made,
  type Scene,
  type Sent,
  signedByP256,
  signedByRsa,
  twice,
} from './forgeries.ts'
import { newSigner, type Signer } from './signer.ts'
import { timeBox } from '../time-box.ts'
import { NOTHING_PUBLISHED } from './published.ts'

const NOW_S = 1_795_424_600
const NOW_MS = NOW_S * 1_000
const ID = 'https://agent.example'
const SCENE: Scene = {
  agent: {
    id: ID,
    ed25519: newSigner('ed25519'),
    p256: newSigner('ecdsa-p256-sha256'),
    rsa: newSigner('rsa-pss-sha512'),
  },
  stranger: newSigner('ed25519'),
  authority: 'gate.example',
  nowS: NOW_S,
}
const { ed25519, p256, rsa } = SCENE.agent

test('what is signed rightly, with each kind of key and in each form', async () => {
  const check = checker()
  for (const [name, sent, thumbprint] of [
    ['Ed25519', made(SCENE), ed25519.key.thumbprint],
    ['with alg', made(SCENE, { alg: 'ed25519' }), ed25519.key.thumbprint],
    [
      'P-256',
      made(SCENE, { keyid: p256.key.thumbprint, signature: (base) => signedByP256(p256.privateKey, base) }),
      p256.key.thumbprint,
    ],
    [
      'RSA-PSS',
      made(SCENE, { keyid: rsa.key.thumbprint, signature: (base) => signedByRsa(rsa.privateKey, base) }),
      rsa.key.thumbprint,
    ],
    [
      'as drafts had it',
      made(SCENE, { agent: `"${ID}"`, components: bareAgent(SCENE) }),
      ed25519.key.thumbprint,
    ],
    ['a label of its own', made(SCENE, { label: 'me' }), ed25519.key.thumbprint],
    ['an unknown parameter', made(SCENE, { more: ';x-odd="1";y' }), ed25519.key.thumbprint],
  ] as const) {
    const checked = check(sent)
    assert.ok(checked?.kind === 'use', `${name}: ${JSON.stringify(checked)}`)
    assert.deepEqual(checked.finding, { kind: 'proven', agentId: ID, thumbprint, about: null })
    assert.deepEqual([checked.use.holder, checked.use.createdS], [null, NOW_S])
  }
})

for (const { name, finding, why, make } of FORGERIES)
  test(`forged: ${name}`, async () => {
    const checked = checker()(make(SCENE))
    assert.equal(checked?.kind, 'finding')
    assert.deepEqual([checked.finding.kind, (checked.finding as { why: string }).why], [finding, why])
    assert.ok(SIGNATURE_FAULTS.includes(why), 'it has a text, and a label in metrics')
  })

test('without a nonce it belongs to its first client; if a nonce is required, it fails', async () => {
  const checked = checker()(made(SCENE, { nonce: null }))
  assert.ok(checked?.kind === 'use')
  assert.equal(checked.use.holder, '192.0.2.7')
  assert.deepEqual(whyOf(checker({ needsNonce: true })(made(SCENE, { nonce: null }))), 'no-nonce')
  assert.equal(checker({ needsNonce: true })(made(SCENE))?.kind, 'use')
  assert.deepEqual(whyOf(checker({ needsNonce: true })(made(SCENE, { nonce: '' }))), 'no-nonce')
})

test('a signature does not fail if the served hosts are unknown', async () => {
  const forOther = FORGERIES.find(({ why }) => why === 'other-host')!
  assert.deepEqual(checker()(forOther.make(SCENE), '192.0.2.7', 'unknown'), {
    ...{ kind: 'finding', finding: { kind: 'unchecked', why: 'unknown-host', agentId: ID } },
  })
})

test('a signature for another purpose does not claim to be an agent', async () => {
  const { headers } = made(SCENE, { tag: 'gnap' })
  assert.equal(checker()({ ...made(SCENE), headers: headers.slice(2) }), null)
  const bare = made(SCENE).headers.slice(2)
  assert.equal(whyOf(checker()({ ...made(SCENE), headers: bare })), 'no-component')
})

test('a key that is not known yet is asked for, and is missing only from a directory that is up to date', async () => {
  const book = new KeyBook()
  const check = checker({}, book)
  const asked = check(made(SCENE))
  assert.ok(asked?.kind === 'no-key')
  assert.deepEqual([asked.agentId, asked.thumbprint], [ID, ed25519.key.thumbprint])
  assert.deepEqual(asked.finding, { kind: 'unchecked', why: 'no-key-yet', agentId: ID })
  book.take(found({ keys: [jwkOf(p256)], askAgainMs: NOW_MS - 1 }))
  assert.equal(check(made(SCENE))?.kind, 'no-key', 'what is known is old: it may have it by now')
  book.take(found({ keys: [jwkOf(p256)] }))
  assert.equal(whyOf(check(made(SCENE))), 'unknown-key')
  book.take(found({}))
  assert.equal(check(made(SCENE))?.kind, 'use')
  book.take(found({ keys: [jwkOf(p256)] }))
  assert.equal(whyOf(check(made(SCENE))), 'unknown-key', 'it has changed its key')
  for (const why of ['no-directory', 'not-listed']) {
    book.take(found({ keys: [], why }))
    const checked = check(made(SCENE))
    assert.deepEqual(checked, { kind: 'finding', finding: { kind: 'unchecked', why, agentId: ID } })
  }
})

test('a key counts in its time only, and one for tokens, or with a shared secret, never', async () => {
  for (const [jwk, why] of [
    [{ ...jwkOf(ed25519), nbf: NOW_S + 10 }, 'key-out-of-time'],
    [{ ...jwkOf(ed25519), exp: NOW_S }, 'key-out-of-time'],
    [{ kty: 'oct', k: ed25519.jwk.x!, alg: 'HS256' }, 'unknown-key'],
    [{ ...jwkOf(ed25519), use: 'enc' }, 'unknown-key'],
  ] as const) {
    const book = new KeyBook()
    book.take(found({ keys: [jwk] }))
    assert.equal(whyOf(checker({}, book)(made(SCENE))), why)
  }
  const book = new KeyBook()
  book.take(found({ keys: [{ ...jwkOf(rsa), alg: 'PS256' }] }))
  const sent = made(SCENE, {
    keyid: rsa.key.thumbprint,
    signature: (base) => signedByRsa(rsa.privateKey, base),
  })
  assert.equal(whyOf(checker({}, book)(sent)), 'other-algorithm')
})

test('stops checking clients that send invalid signatures, and still checks others', async () => {
  const book = bookOfAll()
  const budget = new FailureBudget()
  const check = checker({}, book, budget)
  const wrong = FORGERIES.find(({ name }) => name.startsWith('its keyid'))!
  const outcomes = Array.from({ length: 60 }, () => whyOf(check(wrong.make(SCENE), 'liar')))
  assert.deepEqual([...new Set(outcomes)], ['wrong', 'too-many'])
  assert.equal(outcomes.filter((why) => why === 'wrong').length, 20)
  assert.equal(check(made(SCENE))?.kind, 'use')
  // From everywhere: the key of the agent is checked only for clients that proved it.
  const everywhere = Array.from({ length: 500 }, (_, i) => whyOf(check(wrong.make(SCENE), `${i}`)))
  assert.equal(everywhere.filter((why) => why === 'wrong').length, 80)
  assert.equal(check(made(SCENE))?.kind, 'use')
  assert.equal(whyOf(check(made(SCENE), 'newcomer')), 'too-many')
})

test('who names a key of which too many are wrong is not read, nor soon who names none', async () => {
  const [book, budget] = [bookOfAll(), new FailureBudget()]
  const check = checker({}, book, budget)
  assert.equal(check(made(SCENE))?.kind, 'use')
  const wrong = FORGERIES.find(({ name }) => name.startsWith('its keyid'))!
  const damaged = made(SCENE, { more: ';expires=1' })
  assert.equal(whyOf(check(damaged, 'a')), 'malformed')
  for (let i = 0; i < 100; i++) check(wrong.make(SCENE), `${i}`)
  assert.equal(whyOf(check(damaged, 'b')), 'too-many')
  assert.equal(whyOf(check(damaged)), 'malformed', 'of a client that proved it')
  // Reads claims of two keys or of an unknown key: a thousand in all.
  const veiled = made(SCENE, { more: ';x="keyid="' })
  const unknown = FORGERIES.find(({ why }) => why === 'unknown-key')!
  for (let i = 0; i < 998; i++) {
    assert.ok(budget.mayRead('new', NOW_MS))
    check(i % 2 === 0 ? veiled : unknown.make(SCENE), `c${i}`)
  }
  assert.equal(whyOf(check(unknown.make(SCENE), 'new')), 'too-many')
  assert.equal(check(made(SCENE))?.kind, 'use')
})

test('of several signatures, each is checked by itself, and a valid one counts', async () => {
  const check = checker()
  const by = (key: KeyObject, label?: string) =>
    made(SCENE, { signature: (base) => sign(null, base, key), ...(label !== undefined && { label }) })
  const [good, bad] = [SCENE.agent.ed25519.privateKey, SCENE.stranger.privateKey]
  assert.equal(check(twice(by(good), by(bad, 'sig2')))?.kind, 'use')
  assert.equal(check(twice(by(bad), by(good, 'sig2')))?.kind, 'use')
  assert.equal(whyOf(check(twice(by(bad), by(bad, 'sig2')))), 'wrong')
  const unknown = { ...SCENE, agent: { ...SCENE.agent, id: 'https://new.example' } }
  assert.equal(check(twice(by(bad), made(unknown, { label: 'sig2' })))?.kind, 'no-key')
  assert.equal(check(twice(made(unknown), by(good, 'sig2')))?.kind, 'use')
  const did = made(SCENE, { label: 'sig2', agent: `sig2="${ID}";type=did` })
  assert.equal(check(twice(by(good), did))?.kind, 'use')
  assert.equal(whyOf(check(twice(by(bad), did))), 'wrong')
})

test('of more signatures than four, the rest is not checked', async () => {
  const check = checker()
  const bad = (label: string) =>
    made(SCENE, { label, signature: (base) => sign(null, base, SCENE.stranger.privateKey) })
  const four = ['a', 'b', 'c', 'd'].map(bad).reduce(twice)
  assert.equal(whyOf(check(four)), 'wrong')
  assert.equal(whyOf(check(twice(four, made(SCENE)))), 'wrong')
})

test('a request that is changed anywhere where it is signed does not hold', async () => {
  const sent = made(SCENE, {
    components: [
      ['"@authority"', SCENE.authority],
      ['"@method"', 'GET'],
      ['"@path"', '/cart'],
      ['"@query"', '?id=7'],
      ['"signature-agent";key="sig1"', `"${ID}"`],
    ],
  })
  const keys = bookOfAll()
  const before = checker({}, keys)(sent)
  assert.ok(before?.kind === 'use')
  fc.assert(
    fc.property(fc.nat(), fc.integer({ min: 1, max: 255 }), (at, flip) => {
      const changed = flipped(sent, at, flip)
      const checked = checker({}, keys)(changed)
      if (checked?.kind !== 'use') return
      // Blanks and the spelling of names say nothing; what is signed is the same.
      assert.deepEqual([checked.finding, checked.use.id], [before.finding, before.use.id])
      assert.equal(meaningOf(changed), meaningOf(sent))
    }),
    timeBox(5_000, 4_000),
  )
})

/** As in the specification of Visa's Trusted Agent Protocol and in its sample code. */
const TAP = {
  input:
    'sig2=("@authority" "@path"); created=1735689600; expires=1735693200; keyId="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"; alg="Ed25519"; nonce="e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4IAZyadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg=="; tag="TAG"',
  signature:
    'sig2=:jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==:',
}

for (const tag of PAYMENT_TAGS)
  test(`a signature with the tag ${tag} is a fact of its own and never fails`, async () => {
    const headers = ['Signature-Input', TAP.input.replace('TAG', tag), 'Signature', TAP.signature]
    const alone = { method: 'GET', target: '/example-product', authority: SCENE.authority, headers }
    for (const sent of [
      alone,
      { ...alone, headers: ['Signature-Agent', '"https://agent.example"', ...headers] },
    ])
      assert.deepEqual(checker()(sent), {
        kind: 'finding',
        finding: { kind: 'unchecked', why: 'payment-tag', agentId: null, payment: tag },
      })
    const proven = checker()(beside(made(SCENE), tag))
    assert.equal(proven?.kind, 'use')
    assert.equal(proven.finding.payment, tag)
    const wrong = checker()(beside(made(SCENE, { signature: () => Buffer.alloc(64) }), tag))
    assert.ok(wrong?.kind === 'finding' && wrong.finding.kind === 'failed')
    assert.equal(wrong.finding.payment, tag)
  })

/** With a signature of the Trusted Agent Protocol in the form of a structured field. */
function beside({ headers, ...sent }: Sent, tag: string): Sent {
  const input = TAP.input.replace('TAG', tag).replace('keyId', 'keyid')
  const more = new Map([
    ['Signature-Input', input],
    ['Signature', TAP.signature],
  ])
  return {
    ...sent,
    headers: headers.map((text, i) =>
      more.has(headers[i - 1]!) ? `${text}, ${more.get(headers[i - 1]!)}` : text,
    ),
  }
}

test('a signed request is found by its headers, in any case', async () => {
  for (const name of ['Signature-Input', 'signature-input', 'SIGNATURE-AGENT'])
    assert.ok(isSigned(['Host', 'a', name, 'x']), name)
  for (const name of [
    'Signature',
    'signature_input',
    'Signature-Inputs',
    'x-signature-inp',
    'Sec-Fetch-Moden',
  ])
    assert.ok(!isSigned(['Host', 'a', name, 'signature-input']), name)
})

/** One bit or more of one of its bytes. */
function flipped(sent: Sent, at: number, flip: number): Sent {
  const { method, target, authority, headers } = sent
  const parts = [method, target, authority, ...headers]
  let left = at % parts.reduce((sum, part) => sum + part.length, 0)
  const changed = parts.map((part) => {
    const here = left >= 0 && left < part.length ? left : -1
    left -= part.length
    if (here === -1) return part
    return part.slice(0, here) + String.fromCharCode(part.charCodeAt(here) ^ flip) + part.slice(here + 1)
  })
  const [newMethod = '', newTarget = '', newAuthority = '', ...newHeaders] = changed
  return { method: newMethod, target: newTarget, authority: newAuthority, headers: newHeaders }
}

/** Everything in it that has a meaning. */
function meaningOf({ method, target, authority, headers }: Sent): string {
  // The last bits of base64 that form no byte are unused.
  const bytes = (text: string) =>
    text.replace(/:([\w+/=]+):/, (_, of) => Buffer.from(of, 'base64').toString('hex'))
  const fields = headers.map((text, i) =>
    i % 2 === 0 ? text.toLowerCase() : bytes(text.replaceAll(/[ \t]/g, '')),
  )
  return JSON.stringify([method, target, authority.toLowerCase(), fields])
}

function checker(rules: { needsNonce?: boolean } = {}, book = bookOfAll(), budget = new FailureBudget()) {
  const check = new SignatureCheck(
    { allowPrivate: false, needsNonce: false, readsSignatureKey: false, ...rules },
    book,
    budget,
  )
  return (
    { method, target, authority, headers }: Sent,
    network = '192.0.2.7',
    owner: HostOwner = 'other',
  ): Checked | null => {
    const asked: SentRequest = {
      ...{ method, target, base: `https://${authority}`, rawHeaders: ['Host', authority, ...headers] },
      ...{ host: authority === SCENE.authority ? 'ours' : owner, address: '192.0.2.7', network },
    }
    const checked = check.check(asked, NOW_MS)
    if (checked?.kind === 'use') check.settle(checked, asked, true, NOW_MS)
    return checked
  }
}

function bookOfAll(): KeyBook {
  const book = new KeyBook()
  book.take(found({}))
  return book
}

function found(changes: Partial<InquiryResult & { kind: 'keys' }>): InquiryResult & { kind: 'keys' } {
  const times = { askAgainMs: NOW_MS + 10_000, freshUntilMs: NOW_MS + 60_000, untilMs: NOW_MS + 3_600_000 }
  const keys = [ed25519, p256, rsa].map(jwkOf)
  return { kind: 'keys', agentId: ID, keys, why: null, ...NOTHING_PUBLISHED, ...times, ...changes }
}

function jwkOf({ jwk }: Signer): Record<string, string> {
  return jwk as Record<string, string>
}

function whyOf(checked: Checked | null): string | null {
  if (
    checked === null ||
    checked.kind === 'use' ||
    checked.finding.kind === 'proven' ||
    checked.finding.kind === 'key'
  )
    return null
  return checked.finding.why
}
