import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey, generateKeyPairSync, type JsonWebKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { test } from 'tap'
import {
  AgentDocumentFault,
  documentPlaceOf,
  readAgentDocument,
  readAgentId,
  readKeySet,
} from '../../src/identity/keys/agent-document.ts'
import { isInTime } from '../../src/identity/keys/agent-key.ts'
import { newSigner } from './signer.ts'

const RULES = { allowPrivate: false }
const ID = 'https://agent.example/aid.json'
const [ed, ec, p384, rsa] = (
  ['ed25519', 'ecdsa-p256-sha256', 'ecdsa-p384-sha384', 'rsa-pss-sha512'] as const
).map((algorithm) => newSigner(algorithm)) as [Signed, Signed, Signed, Signed]
type Signed = ReturnType<typeof newSigner>

const jwks = { keys: [{ ...ed.jwk, kid: 'one' }, ec.jwk] }

test('a document as clients have it, as agents have it, and keys alone', async () => {
  const found = readAgentDocument(
    {
      client_id: ID,
      client_name: 'A bot',
      jwks,
      redirect_uris: [],
      token_endpoint_auth_method: 'private_key_jwt',
    },
    ID,
    RULES,
  )
  assert.ok(Array.isArray(found.keys))
  assert.deepEqual(
    [found.id, found.name, found.keys.map(({ kid, thumbprint }) => kid ?? thumbprint)],
    [ID, 'A bot', ['one', ec.key.thumbprint]],
  )
  assert.deepEqual(found.keys[0].jwk, { ...ed.jwk, kid: 'one' })
  const agent = readAgentDocument({ agent_id: ID, name: 'A bot', public_key: ec.jwk }, ID, RULES)
  assert.deepEqual([agent.id, agent.name, (agent.keys as []).length], [ID, 'A bot', 1])
  const both = readAgentDocument(
    { agent_id: ID, client_id: ID, jwks_uri: 'https://a.example/keys?x=1' },
    ID,
    RULES,
  )
  assert.deepEqual(both, {
    id: ID,
    name: null,
    keys: { jwksUri: 'https://a.example/keys?x=1' },
    redirectUris: [],
  })
  const app = readAgentDocument({ client_id: ID, redirect_uris: ['https://a.example/back'] }, ID, RULES)
  assert.deepEqual([app.keys, app.redirectUris], [[], ['https://a.example/back']])
  const keys = readAgentDocument(jwks, ID, RULES)
  assert.deepEqual([keys.id, keys.name, (keys.keys as []).length], [null, null, 2])
  for (const client_id of ['https://agent.example', 'https://agent.example/'])
    assert.equal(
      readAgentDocument({ client_id, public_key: ec.jwk }, 'https://agent.example', RULES).id,
      'https://agent.example',
    )
  assert.equal(
    readAgentDocument({ agent_id: 'https://agent.example/', public_key: ec.jwk }, null, RULES).id,
    'https://agent.example',
  )
})

test('of a set those keys are taken that can sign, for what they can', async () => {
  const x25519 = generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' })
  const set = {
    keys: [
      ...[
        x25519,
        { ...ec.jwk, use: 'enc' },
        { ...ec.jwk, key_ops: ['encrypt'] },
        { kty: 'AKP', alg: 'ML-DSA-44' },
      ],
      ...[
        { ...ec.jwk, alg: 'none' },
        { ...rsa.jwk, alg: 'HS256' },
        { ...ec.jwk, alg: 'RS256' },
      ],
      { ...ed.jwk, alg: 'ed25519', use: 'sig', nbf: 1, exp: 2 },
      { ...ec.jwk, alg: 'ES256' },
      { ...p384.jwk },
      { ...rsa.jwk, alg: 'PS256' },
    ],
  }
  assert.deepEqual(
    readKeySet(set, RULES).map(({ algorithm, signsRequests, jwk }) => [algorithm, signsRequests, jwk['alg']]),
    [
      ['ed25519', true, 'EdDSA'],
      ['ecdsa-p256-sha256', true, 'ES256'],
      ['ecdsa-p384-sha384', true, undefined],
      ['rsa-pss-sha512', false, 'PS256'],
    ],
  )
})

test('a key says from when to when it is one, in seconds, or in milliseconds as large directories do', async () => {
  const timesOf = (times: Record<string, unknown>) => {
    const [key] = readKeySet({ keys: [{ ...ec.jwk, ...times }] }, RULES)
    return { key: key!, times: [key!.fromMs, key!.untilMs, key!.jwk['nbf'], key!.jwk['exp']] }
  }
  assert.deepEqual(timesOf({}).times, [null, null, undefined, undefined])
  const seconds = timesOf({ nbf: 1_712_793_600, exp: 1_715_385_600 })
  const both = [1_712_793_600_000, 1_715_385_600_000, 1_712_793_600, 1_715_385_600]
  assert.deepEqual(seconds.times, both)
  assert.deepEqual(timesOf({ nbf: 1_712_793_600_000, exp: 1_715_385_600_000 }).times, both)
  const [from, until] = both as [number, number]
  assert.deepEqual(
    [from - 1, from, until - 1, until].map((nowMs) => isInTime(seconds.key, nowMs)),
    [false, true, true, false],
  )
  assert.ok(isInTime(timesOf({}).key, 0))
  assert.ok(!isInTime(timesOf({ nbf: 2, exp: 1 }).key, 1_500), 'never')
  for (const member of ['nbf', 'exp'])
    for (const wrong of ['1712793600', -1, null, Number.NaN, 1e300, {}])
      assert.throws(
        () => timesOf({ [member]: wrong }),
        new AgentDocumentFault(`/keys/0/${member}`, 'must be seconds since 1970'),
      )
})

const weak = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' })
const odd = generateKeyPairSync('rsa', { modulusLength: 2048, publicExponent: 3 }).publicKey.export({
  format: 'jwk',
})
const secret = ec.privateKey.export({ format: 'jwk' })
const published = JSON.parse(readFileSync('test/vectors/http-signatures.json', 'utf8')).keys as Record<
  string,
  JsonWebKey
>
const good = { client_id: ID, jwks }
const withKeys = (...keys: unknown[]) => ({ client_id: ID, jwks: { keys } })

const BAD: readonly (readonly [title: string, document: unknown, pointer: string, detail: RegExp])[] = [
  ['nothing', null, '', /is not an object/],
  ['a text', 'x', '', /is not an object/],
  ['a list', [good], '', /is not an object/],
  ['nothing in it', {}, '/client_id', /missing/],
  ['no id', { jwks }, '/client_id', /missing/],
  ['the id of another', { ...good, client_id: 'https://other.example/' }, '/client_id', /not the address/],
  ['the id of another besides', { ...good, agent_id: `${ID}/` }, '/agent_id', /not the address/],
  ['an id that is near', { ...good, client_id: ID.toUpperCase() }, '/client_id', /not the address/],
  ['a list of ids', { ...good, client_id: [ID] }, '/client_id', /not the address/],
  ['an id that is null', { ...good, client_id: null }, '/client_id', /not the address/],
  ['a secret', { ...good, client_secret: 'never-shown' }, '/client_secret', /must not be in a public/],
  ['a private key beside', { ...good, private_key: secret }, '/private_key', /must not be in a public/],
  [
    'a method with a secret',
    { ...good, token_endpoint_auth_method: 'client_secret_post' },
    '/token_endpoint_auth_method',
    /must be one of private_key_jwt, none/,
  ],
  ['no name', { ...good, client_name: '' }, '/client_name', /1 to 100/],
  ['a long name', { ...good, client_name: 'x'.repeat(101) }, '/client_name', /1 to 100/],
  ['a name over two lines', { ...good, name: 'a\nb' }, '/name', /no control/],
  ['an invalid name', { ...good, client_name: { a: 1 } }, '/client_name', /1 to 100/],
  ['no keys', { client_id: ID }, '/jwks', /one of jwks, jwks_uri, public_key/],
  ['no keys, and nowhere to send people', { client_id: ID, redirect_uris: [] }, '/jwks', /give one/],
  [
    'one place for people',
    { ...good, redirect_uris: 'https://a.example/' },
    '/redirect_uris',
    /must be a list/,
  ],
  ['an invalid place', { ...good, redirect_uris: ['x', 7] }, '/redirect_uris/1', /must be a URI/],
  ['keys twice', { ...good, public_key: ec.jwk }, '/public_key', /give one/],
  ['keys and their place', { ...good, jwks_uri: ID }, '/jwks_uri', /give one/],
  ['an invalid set', { ...good, jwks: [] }, '/jwks', /is not an object/],
  ['a set without keys', { ...good, jwks: {} }, '/jwks/keys', /must be a list/],
  ['an empty set', withKeys(), '/jwks/keys', /no key for signatures/],
  [
    'no key that is known',
    withKeys({ kty: 'OKP', crv: 'X25519', x: 'x' }),
    '/jwks/keys',
    /no key for signatures/,
  ],
  ['too many keys', withKeys(...Array.from({ length: 33 }, () => ec.jwk)), '/jwks/keys', /more than 32/],
  ['an invalid key', withKeys(ed.jwk, 7), '/jwks/keys/1', /is not an object/],
  ['a private key', withKeys(ed.jwk, secret), '/jwks/keys/1/d', /is private/],
  ['a shared secret', withKeys({ kty: 'oct', k: 'c2VjcmV0' }), '/jwks/keys/0/k', /is private/],
  ['a private key of another kind', withKeys(ed.jwk, { kty: 'X', d: 'x' }), '/jwks/keys/1/d', /is private/],
  ['the same key twice', withKeys(ed.jwk, { ...ed.jwk, kid: 'two' }), '/jwks/keys', /two keys of one name/],
  [
    'the same kid twice',
    withKeys({ ...ed.jwk, kid: 'a' }, { ...ec.jwk, kid: 'a' }),
    '/jwks/keys',
    /two keys of/,
  ],
  [
    'a kid that is the thumbprint of another',
    withKeys(ed.jwk, { ...ec.jwk, kid: ed.key.thumbprint }),
    '/jwks/keys',
    /two keys of one name/,
  ],
  ['an invalid kid', withKeys({ ...ed.jwk, kid: 7 }), '/jwks/keys/0/kid', /1 to 256/],
  ['a long kid', withKeys({ ...ed.jwk, kid: 'x'.repeat(257) }), '/jwks/keys/0/kid', /1 to 256/],
  ['a weak key', withKeys(weak), '/jwks/keys/0/n', /not what such a key has/],
  ['an exponent of 3', withKeys(odd), '/jwks/keys/0/e', /not what such a key has/],
  ['an exponent of 1', withKeys({ ...rsa.jwk, e: 'AQ' }), '/jwks/keys/0/e', /not what such a key has/],
  ['no point of the curve', withKeys({ ...ec.jwk, y: ec.jwk.x }), '/jwks/keys/0/x', /no point of the curve/],
  ['a short member', withKeys({ ...ed.jwk, x: 'AAAA' }), '/jwks/keys/0/x', /not what such a key has/],
  ['padding', withKeys({ ...ed.jwk, x: `${ed.jwk.x}=` }), '/jwks/keys/0/x', /not what such a key has/],
  [
    'a huge member',
    withKeys({ ...ed.jwk, x: 'A'.repeat(60_000) }),
    '/jwks/keys/0/x',
    /not what such a key has/,
  ],
  ['keys at http', { client_id: ID, jwks_uri: 'http://a.example/' }, '/jwks_uri', /must be a URL with https/],
  [
    'keys on this machine',
    { client_id: ID, jwks_uri: 'file:///etc/keys' },
    '/jwks_uri',
    /must be a URL with https/,
  ],
  [
    'keys behind a password',
    { client_id: ID, jwks_uri: 'https://a:b@a.example/' },
    '/jwks_uri',
    /a user or a pass/,
  ],
  ['keys at no place', { client_id: ID, jwks_uri: 7 }, '/jwks_uri', /must be a URL/],
  ['a public key that is private', { agent_id: ID, public_key: secret }, '/public_key/d', /is private/],
  [
    'a public key of no known kind',
    { agent_id: ID, public_key: { kty: 'OKP', crv: 'Ed448' } },
    '/public_key/kty',
    /take EC/,
  ],
  ...Object.entries(published).flatMap(([name, key]) => {
    const { d, p, q, dp, dq, qi, alg, ...jwk } = createPublicKey({
      key: toPublic(key),
      format: 'jwk',
    }).export({ format: 'jwk' }) as Record<string, unknown>
    const form = jwk['crv'] ?? jwk['kty']
    return ['Ed25519', 'P-256', 'RSA'].includes(String(form))
      ? [[`the published key ${name}`, withKeys(jwk), '/jwks/keys/0', /published key for tests/] as const]
      : []
  }),
]

function toPublic(key: JsonWebKey): JsonWebKey {
  return key.d === undefined
    ? key
    : createPublicKey(createPrivateKey({ key, format: 'jwk' })).export({ format: 'jwk' })
}

for (const [title, document, pointer, detail] of BAD)
  test(`refused: ${title}`, async () => {
    assert.throws(
      () => readAgentDocument(document, ID, RULES),
      (error: AgentDocumentFault) => {
        assert.ok(error instanceof AgentDocumentFault)
        assert.equal(error.pointer, pointer)
        assert.match(error.detail, detail)
        assert.ok(error.message.length < 200 && !error.message.includes('never-shown'))
        assert.ok(!error.message.includes(secret.d!))
        return true
      },
    )
  })

test('whatever comes, it is read or refused', async () => {
  const keyish = fc.oneof(
    fc.constantFrom(ed.jwk, ec.jwk, rsa.jwk, secret, {}, null),
    fc.dictionary(
      fc.constantFrom('kty', 'crv', 'x', 'y', 'n', 'e', 'd', 'kid', 'alg', 'use', 'key_ops', '__proto__'),
      fc.jsonValue(),
    ),
    fc.jsonValue(),
  )
  const member = fc.oneof(fc.constant(ID), fc.jsonValue(), keyish, fc.record({ keys: fc.array(keyish) }))
  const names = [
    'client_id',
    'agent_id',
    'client_name',
    'name',
    'jwks',
    'jwks_uri',
    'public_key',
    'keys',
    'toString',
  ]
  const document = fc.oneof(fc.jsonValue(), fc.dictionary(fc.constantFrom(...names), member))
  fc.assert(
    fc.property(document, fc.constantFrom(ID, null), (value, id) => {
      try {
        readAgentDocument(value, id, RULES)
      } catch (error) {
        assert.ok(error instanceof AgentDocumentFault, String(error))
      }
    }),
    { numRuns: 2_000 },
  )
})

test('an agent has one id', async () => {
  const read = (text: string, allowPrivate = false) => Object.values(readAgentId(text, { allowPrivate }))[0]
  assert.equal(read(ID), ID)
  assert.equal(read('https://agent.example'), 'https://agent.example')
  assert.equal(read('https://agent.example/'), 'https://agent.example')
  assert.equal(read('https://agent.example/?a'), 'https://agent.example/?a')
  assert.equal(read('https://agent.example:8443/a'), 'https://agent.example:8443/a')
  for (const other of [
    ...[
      'https://Agent.example/aid.json',
      'https://agent.example:443/aid.json',
      'https://agent.example/x/../aid.json',
    ],
    ...[
      'HTTPS://agent.example/aid.json',
      'https:\\\\agent.example\\aid.json',
      ' https://agent.example/aid.json',
    ],
    ...[
      'https://agent.example/aid\t.json',
      'https://agent.example/./aid.json',
      'https:/agent.example/aid.json',
    ],
  ])
    assert.equal(read(other), `is not written as it should be: ${ID}`, other)
  for (const [text, refused] of [
    ['openai-python', /must be a URL with https/],
    ['http://agent.example/', /must be a URL with https/],
    ['https://user@agent.example/', /user or a password/],
    ['https://agent.example/#a', /fragment/],
    ['https://аgent.example/aid', /is not written as it should be: https:\/\/xn--/],
    [`https://agent.example/${'x'.repeat(2_048)}`, /longer than/],
  ] as const)
    assert.match(read(text)!, refused)
  assert.equal(read('http://127.0.0.1:8080/a', true), 'http://127.0.0.1:8080/a')
  const directory = 'https://agent.example/.well-known/http-message-signatures-directory'
  assert.equal(read(directory), 'https://agent.example')
  assert.equal(read(`${directory}/`), `${directory}/`)
  assert.equal(documentPlaceOf(ID), ID)
  assert.equal(documentPlaceOf('https://agent.example'), directory)
})
