import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import {
  checker,
  HOST,
  keySet,
  NOW_MS,
  NOW_S,
  other,
  published,
  type Sending,
  sent,
  shown,
  signer,
} from './keyed-requests.ts'
import { readDelegationToken } from '../../src/identity/verify/delegation-token.ts'
import { delegationToken, type Making } from './delegation-tokens.ts'
import { newSigner } from './signer.ts'

/** Signs requests. `signer` and `other` are keys of the issuer. */
const agent = newSigner('ed25519')
const cnf = { jwk: { ...agent.jwk, alg: 'Ed25519' } }
const AUD = `https://${HOST}`

/** A token of this issuer for `agent`. */
function token(iss: string, { header = {}, claims = {}, by = signer }: Making = {}): string {
  const times = { iat: NOW_S, exp: NOW_S + 3_600 }
  return delegationToken(by, { kid: 'k1', ...header }, { iss, ...times, cnf, ...claims })
}

function field(jwt: string): string {
  return `sig1=jwt;jwt="${jwt}"`
}

const PERSON = {
  header: { typ: 'aa-person+jwt' },
  claims: { dwk: 'aauth-person.json', sub: '8f14e45f', aud: AUD },
}

/** An issuer whose keys are known. */
async function issuer(t: Test) {
  const { server, id, fetched } = await published(t)
  server.serveJson('/keys', keySet())
  const books = new Map<string, Awaited<ReturnType<typeof fetched>>>()
  for (const name of ['aauth-agent.json', 'aauth-person.json', 'aauth-access.json', 'own.json']) {
    server.serveJson(`/.well-known/${name}`, { issuer: id, jwks_uri: server.url('/keys') })
    books.set(name, await fetched(`${id}/.well-known/${name}`, 'k1'))
  }
  const check = async (jwt: string, dwk = 'aauth-agent.json', sending: Sending = {}, nowMs = NOW_MS) =>
    checker(books.get(dwk))(await sent(field(jwt), { by: agent, ...sending }), nowMs)
  return { id, check }
}

test('a token of an issuer proves the issuer, once its keys are known', async (t) => {
  const { id, check } = await issuer(t)
  const place = `${id}/.well-known/aauth-agent.json`
  const jwt = token(id)
  assert.equal(shown(checker()(await sent(field(jwt), { by: agent }))), `no-key ${place} k1`)
  const checked = await check(jwt)
  assert.equal(shown(checked), `use proven ${id} ${signer.key.thumbprint}`)
  assert.ok(checked?.kind === 'use' && checked.use.thumbprint === signer.key.thumbprint)
  // The signature ends with its token.
  const short = await check(token(id, { claims: { exp: NOW_S + 30 } }))
  assert.ok(short?.kind === 'use' && short.use.goodUntilMs === NOW_MS + 30_000)
  for (const header of [{ typ: undefined }, { typ: 'JWT' }, { typ: 'AA-Agent+JWT' }])
    assert.equal(shown(await check(token(id, { header }))), shown(checked), JSON.stringify(header))
  const own = token(id, {
    header: { typ: 'JWT' },
    claims: { dwk: 'own.json', aud: ['https://x.example', AUD] },
  })
  assert.equal(shown(await check(own, 'own.json')), shown(checked))
})

test('a token about a person names no agent, and says whose person it is', async (t) => {
  const { id, check } = await issuer(t)
  for (const [typ, dwk] of [
    ['aa-person+jwt', 'aauth-person.json'],
    ['aa-auth+jwt', 'aauth-person.json'],
    ['aa-auth+jwt', 'aauth-access.json'],
  ] as const) {
    const checked = await check(token(id, { header: { typ }, claims: { ...PERSON.claims, dwk } }), dwk)
    assert.ok(checked?.kind === 'use', `${typ} ${shown(checked)}`)
    assert.deepEqual(checked.finding, { kind: 'key', thumbprint: agent.key.thumbprint, personOf: id })
    // It is used once, and the issuer answers for all of its keys together.
    assert.equal(checked.use.thumbprint, signer.key.thumbprint)
  }
})

test('forged and foreign tokens', async (t) => {
  const { id, check } = await issuer(t)
  const p256 = newSigner('ecdsa-p256-sha256')
  const good = token(id)
  const [head, , bytes] = good.split('.') as [string, string, string]
  const [, otherClaims] = token(id, { claims: { sub: 'aauth:boss@a.example' } }).split('.') as [
    string,
    string,
  ]
  const swapped = { ...p256.jwk, alg: 'ES256' }
  for (const [name, jwt, found, sending] of [
    ['signed by another key', token(id, { by: other }), 'failed token-wrong'],
    ['a kid of another key', token(id, { header: { kid: 'k2' } }), 'failed token-wrong'],
    ['other claims', `${head}.${otherClaims}.${bytes}`, 'failed token-wrong'],
    ['no signature', token(id, { header: { alg: 'none' } }).replace(/[^.]+$/, ''), 'failed malformed'],
    ['alg none', token(id, { header: { alg: 'none' } }), 'failed token-wrong'],
    ['alg of a secret', token(id, { header: { alg: 'HS256' } }), 'failed token-wrong'],
    ['another alg', token(id, { header: { alg: 'ES256' } }), 'failed token-wrong'],
    ['another key signed the request', good, 'failed wrong', { by: other }],
    ['its issuer signed the request', good, 'failed wrong', { by: signer }],
    ['the token names another key', token(id, { claims: { cnf: { jwk: swapped } } }), 'failed wrong'],
    [
      'the token is swapped',
      good,
      'failed wrong',
      { after: { 'Signature-Key': field(token(id, { claims: { jti: '2' } })) } },
    ],
    ['expired', token(id, { claims: { exp: NOW_S } }), 'failed token-expired'],
    ['from the future', token(id, { claims: { iat: NOW_S + 61 } }), 'failed token-expired'],
    [
      'for another server',
      token(id, { claims: { aud: 'https://shop.example' } }),
      'failed token-for-another',
    ],
    ['for a path of this one', token(id, { claims: { aud: `${AUD}/` } }), 'failed token-for-another'],
    ['not for a server', token(id, { claims: { aud: [] } }), 'failed token-for-another'],
    ['no such kid', token(id, { header: { kid: 'k9' } }), 'unchecked ignored-key'],
    ['a kid without alg', token(id, { header: { kid: 'bare' } }), 'unchecked ignored-key'],
    [
      'a symmetric key',
      token(id, { claims: { cnf: { jwk: { kty: 'oct', k: 'AAAA', alg: 'HS256' } } } }),
      'unchecked ignored-key',
    ],
    ['a key without alg', token(id, { claims: { cnf: { jwk: agent.jwk } } }), 'unchecked ignored-key'],
    [
      'alg and kind disagree',
      token(id, { claims: { cnf: { jwk: { ...agent.jwk, alg: 'ES256' } } } }),
      'failed other-algorithm',
    ],
    ['a private key', token(id, { claims: { cnf: { jwk: { ...cnf.jwk, d: 'AAAA' } } } }), 'failed malformed'],
  ] as const satisfies readonly (readonly [string, string, string, Sending?])[]) {
    assert.equal(shown(await check(jwt, 'aauth-agent.json', sending)), `finding ${found}`, name)
  }
  // The name of a person counts only in a token for such names, and for this server.
  for (const [name, making, dwk, found] of [
    [
      'for another server',
      { claims: { aud: 'https://x.example' } },
      'aauth-person.json',
      'failed token-for-another',
    ],
    ['for no server', { claims: { aud: undefined } }, 'aauth-person.json', 'failed malformed'],
    [
      'of an agent provider',
      { claims: { dwk: 'aauth-agent.json' } },
      'aauth-agent.json',
      'unchecked ignored-key',
    ],
  ] as const) {
    const jwt = token(id, { ...PERSON, claims: { ...PERSON.claims, ...making.claims } })
    assert.equal(shown(await check(jwt, dwk)), `finding ${found}`, name)
  }
})

test('tokens of other kinds cannot be judged, and malformed ones are refused', async (t) => {
  const { id, check } = await issuer(t)
  const text = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const good = token(id)
  const [head, claims, bytes] = good.split('.') as [string, string, string]
  for (const [jwt, found] of [
    [token(id, { header: { typ: 'at+jwt' } }), 'unchecked ignored-key'],
    [token(id, { header: { typ: 'aa-resource+jwt' } }), 'unchecked ignored-key'],
    [token(id, { header: { typ: 7 } }), 'unchecked ignored-key'],
    [token(id, { header: { crit: ['b64'], b64: false } }), 'unchecked ignored-key'],
    [token(id, { header: { kid: undefined } }), 'unchecked ignored-key'],
    [token(id, { claims: { iss: undefined } }), 'unchecked ignored-key'],
    [token(id, { claims: { dwk: undefined } }), 'unchecked ignored-key'],
    [token(id, { claims: { dwk: 'own.json' } }), 'unchecked ignored-key'],
    [token(id, { claims: { exp: undefined } }), 'unchecked ignored-key'],
    [token(id, { header: { typ: 'JWT' }, claims: { dwk: '../x' } }), 'failed malformed'],
    [token('http://a.example'), 'failed malformed'],
    [token('https://a.example/'), 'failed malformed'],
    [token('https://u:p@a.example'), 'failed malformed'],
    [token(id, { claims: { iss: 7 } }), 'failed malformed'],
    [token(id, { claims: { exp: '9' } }), 'failed malformed'],
    [token(id, { claims: { exp: 1e300 } }), 'failed malformed'],
    [token(id, { claims: { iat: -1 } }), 'failed malformed'],
    [token(id, { claims: { aud: [7] } }), 'failed malformed'],
    [token(id, { claims: { aud: null } }), 'failed malformed'],
    [token(id, { claims: { cnf: undefined } }), 'failed malformed'],
    [token(id, { claims: { cnf: { jkt: 'x' } } }), 'failed malformed'],
    [token(id, { claims: { cnf: { jwk: [] } } }), 'failed malformed'],
    ['', 'failed malformed'],
    ['..', 'failed malformed'],
    [`${good}.`, 'failed malformed'],
    [`${head}.${claims}`, 'failed malformed'],
    [`${head}.${claims}.${bytes}=`, 'failed malformed'],
    [`${head}.${claims}.${bytes} `, 'failed malformed'],
    [`${text([])}.${claims}.${bytes}`, 'failed malformed'],
    [`${head}.${text('x')}.${bytes}`, 'failed malformed'],
    [`${head}.AAAA.${bytes}`, 'failed malformed'],
  ] as const) {
    assert.equal(shown(await check(jwt)), `finding ${found}`, jwt)
  }
  for (const member of ['jwt', 'jwt;jwt=7', 'jwt;jwt=:AAAA:', `jwt;jwt=${head}`])
    assert.equal(
      shown(checker()(await sent(`sig1=${member}`, { by: agent }))),
      'finding failed malformed',
      member,
    )
})

test('a token that is cut or changed at any byte proves nothing', async (t) => {
  const { id, check } = await issuer(t)
  const good = token(id)
  for (let at = 0; at < good.length; at++) {
    const changed = `${good.slice(0, at)}${good[at] === 'A' ? 'B' : 'A'}${good.slice(at + 1)}`
    for (const jwt of [good.slice(0, at), changed])
      assert.doesNotMatch(String(shown(await check(jwt))), /^use/, `${at}: ${jwt}`)
  }
})

test('a token with any claims is read or refused', async () => {
  const value = fc.oneof(fc.jsonValue(), fc.constantFrom('https://a.example', 'aauth-agent.json', 4e9, 1e300))
  const header = fc.dictionary(fc.constantFrom('alg', 'kid', 'crit', '__proto__'), value)
  const claims = fc.dictionary(fc.constantFrom('iss', 'dwk', 'aud', 'exp', 'iat', 'cnf'), value)
  fc.assert(
    fc.property(header, claims, (header, claims) => {
      const read = readDelegationToken(token('https://a.example', { header, claims }), NOW_MS, 60)
      assert.ok(typeof read === 'string' || read.untilMs > NOW_MS)
    }),
  )
})
