import assert from 'node:assert/strict'
import { test } from 'tap'
import { KeyBook } from '../../src/identity/keys/key-book.ts'
import { signRequest } from '../../src/identity/keys/request-signer.ts'
import { bareAgent, made } from './forgeries.ts'
import {
  checker,
  FIELDS,
  HOST,
  hwk,
  keySet,
  NOW_MS,
  NOW_S,
  other,
  published,
  type Sending,
  sent,
  shown,
  signer,
  ALGS,
} from './keyed-requests.ts'
import { newSigner } from './signer.ts'

test('a key in the request proves a key and no name', async () => {
  for (const algorithm of Object.keys(ALGS) as (keyof typeof ALGS)[]) {
    const by = newSigner(algorithm)
    const checked = checker()(await sent(`sig1=${hwk(by)}`, { by }))
    assert.equal(shown(checked), `finding key ${by.key.thumbprint}`, algorithm)
  }
  const rawHeaders = await sent(`sig1=${hwk(signer)}`)
  assert.equal(shown(checker()(rawHeaders, NOW_MS + 119_000)), `finding key ${signer.key.thumbprint}`)
})

test('Signature-Key counts only if it is set', async () => {
  const check = checker(new KeyBook(), { readsSignatureKey: false })
  assert.equal(check(await sent(`sig1=${hwk(signer)}`)), null)
  const tagged = await sent(`sig1=${hwk(signer)}`, { tag: 'web-bot-auth', expiresS: NOW_S + 60 })
  assert.equal(shown(check(tagged)), 'finding unchecked no-agent')
})

test('a signature that this program makes itself is valid, and its alg and keyid are ignored', async () => {
  const field = `sig1=${hwk(signer)}`
  const rawHeaders = ['Host', HOST, 'Signature-Key', field]
  const request = { method: 'GET', target: '/cart?id=7', base: `https://${HOST}`, rawHeaders }
  const key = { ...signer.key, privateKey: signer.privateKey, key: signer.privateKey } as never
  const made = signRequest(
    request,
    { label: 'sig1', components: FIELDS, createdS: NOW_S, expiresS: null, nonce: 'n', tag: null },
    key,
  )
  assert.ok(made[1]!.includes('alg="ed25519"') && made[1]!.includes('keyid='), made[1])
  assert.equal(shown(checker()([...rawHeaders, ...made])), `finding key ${signer.key.thumbprint}`)
  const lying = await sent(field, { algorithm: 'rsa-pss-sha512', keyId: 'another' })
  assert.equal(shown(checker()(lying)), `finding key ${signer.key.thumbprint}`)
})

test('forgeries with a key in the request', async () => {
  const p256 = newSigner('ecdsa-p256-sha256')
  const own = `sig1=${hwk(signer)}`
  const swapped = { after: { 'Signature-Key': `sig1=${hwk(other)}` } }
  for (const [name, field, sending, found] of [
    ['Signature-Key is not covered', own, { fields: ['@authority'] }, 'failed not-covered'],
    ['only its member is covered', own, { fields: ['@authority', 'signature-key;key="sig1"'] }, null],
    ['the host is not covered', own, { fields: ['@method', 'signature-key'] }, 'failed not-covered'],
    ['the key is swapped', own, swapped, 'failed wrong'],
    ['another key made it', own, { by: other }, 'failed wrong'],
    ['a key of another kind', `sig1=${hwk(p256)}`, {}, 'failed wrong'],
    ['alg of another kind of key', `sig1=${hwk(signer, { alg: 'ES256' })}`, {}, 'failed other-algorithm'],
    ['alg of another curve', `sig1=${hwk(p256, { alg: 'ES384' })}`, { by: p256 }, 'failed other-algorithm'],
    ['too old, without expires', own, { createdS: NOW_S - 120 }, 'failed too-old'],
    ['expired', own, { createdS: NOW_S - 200, expiresS: NOW_S - 61 }, 'failed expired'],
    ['from the future', own, { createdS: NOW_S + 61 }, 'failed created-in-future'],
    ['a private key', `sig1=${hwk(signer)};d="AAAA"`, {}, 'failed malformed'],
    ['a kid', `sig1=${hwk(signer)};kid="a"`, {}, 'failed malformed'],
  ] as const) {
    const checked = checker()(await sent(field, sending as Sending))
    assert.equal(shown(checked), `finding ${found ?? 'failed not-covered'}`, name)
  }
})

test('each field of Signature-Key, malformed', async () => {
  const x = String(signer.jwk.x)
  for (const field of [
    'sig1',
    'sig1=?1',
    'sig1=',
    'sig1="hwk"',
    'sig1=hwk;',
    'sig1=(hwk)',
    'sig1=hwk',
    `sig1=hwk;kty=OKP;crv="Ed25519";x="${x}";alg="Ed25519"`,
    `sig1=hwk;kty="OKP";crv="Ed25519";x=:${x}:;alg="Ed25519"`,
    `sig1=${hwk(signer, { x: x.slice(1) })}`,
    `sig1=${hwk(signer, { x: `${x}=` })}`,
    `sig1=${hwk(signer, { x: null })}`,
    `sig1=${hwk(signer)};x="${x}"`,
    `sig1=${hwk(signer)}, sig1=${hwk(other)}`,
    'sig1=jwks_uri;id="https://a.example";dwk="x"',
    'sig1=jwks_uri;id="https://a.example";kid="k"',
    'sig1=jwks_uri;dwk="x";kid="k"',
    'sig1=jwks_uri;id="https://a.example/";dwk="x";kid="k"',
    'sig1=jwks_uri;id="https://A.example";dwk="x";kid="k"',
    'sig1=jwks_uri;id="https://a.example/x?y=";dwk="x";kid="k"',
    'sig1=jwks_uri;id="https://a.example#x";dwk="x";kid="k"',
    'sig1=jwks_uri;id="https://u:p@a.example";dwk="x";kid="k"',
    'sig1=jwks_uri;id="http://a.example";dwk="x";kid="k"',
    'sig1=jwks_uri;id="https://a.example";dwk="../x";kid="k"',
    'sig1=jwks_uri;id="https://a.example";dwk="..";kid="k"',
    'sig1=jwks_uri;id="https://a.example";dwk="x%2f";kid="k"',
    `sig1=jwks_uri;id="https://a.example";dwk="${'x'.repeat(65)}";kid="k"`,
    'sig1=jwks_uri;id="https://a.example";dwk="x";kid=""',
    `sig1=jwks_uri;id="https://a.example";dwk="x";kid="${'k'.repeat(257)}"`,
    'sig1=jwks_uri;id=1;dwk="x";kid="k"',
    'sig1=jwks;url="http://a.example/keys";kid="k"',
    'sig1=jwks;url="keys";kid="k"',
    'sig1=jwks;kid="k"',
  ]) {
    const checked = checker()(await sent(field))
    assert.equal(shown(checked), 'finding failed malformed', field)
  }
})

test('unsupported schemes and keys cannot be judged, and are no fault', async () => {
  const rsa = newSigner('rsa-pss-sha512')
  for (const [field, why] of [
    ['sig1=self-jwt;jwt="e30.e30.AA"', 'ignored-key'],
    ['sig1=jkt-jwt;jwt="e30.e30.AA"', 'ignored-key'],
    ['sig1=x509;x5u="https://a.example/c.pem";x5t=:AAAA:', 'ignored-key'],
    ['sig1=cached;cid="1"', 'ignored-key'],
    ['sig1=unheard-of', 'ignored-key'],
    [`sig1=${hwk(signer, { alg: null })}`, 'ignored-key'],
    [`sig1=${hwk(signer, { alg: 'EdDSA' })}`, 'ignored-key'],
    [`sig1=${hwk(rsa, { alg: 'RS256' })}`, 'ignored-key'],
    ['sig1=hwk;kty="oct";k="AAAA";alg="HS256"', 'ignored-key'],
    ['sig1=hwk;kty="AKP";pub="AAAA";alg="ML-DSA-44"', 'ignored-key'],
    // The key in the examples of the draft: everyone has its private half (RFC 9421, appendix B.1.4).
    [`sig1=${hwk(signer, { x: 'JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs' })}`, 'ignored-key'],
    ['sig1=jwks;url="https://a.example/";kid="k"', 'ignored-key'],
    [`sig1=jwt;jwt="${'e'.repeat(4_100)}"`, 'key-too-large'],
  ] as const) {
    const checked = checker()(await sent(field))
    assert.equal(shown(checked), `finding unchecked ${why}`, field)
  }
})

test('with several labels, each has its own key', async () => {
  const mine = `sig1=${hwk(signer)}, sig2=${hwk(other)}`
  const rawHeaders = await sent(mine)
  assert.equal(shown(checker()(rawHeaders)), `finding key ${signer.key.thumbprint}`)
  assert.equal(
    shown(checker()(await sent(mine, { label: 'sig2', by: other }))),
    `finding key ${other.key.thumbprint}`,
  )
  assert.equal(shown(checker()(await sent(mine, { label: 'sig2' }))), 'finding failed wrong')
  // A member of an unknown scheme belongs to another signature.
  const another = `sig0=new-scheme;a=1, sig1=${hwk(signer)}`
  assert.equal(shown(checker()(await sent(another))), `finding key ${signer.key.thumbprint}`)
  // No member has the label of the signature: the header is ignored.
  assert.equal(checker()(await sent(`sig9=${hwk(signer)}`)), null)
  assert.equal(checker()(['Host', HOST, 'Signature-Key', mine]), null)
})

test('a signature with Signature-Agent is checked as before', async () => {
  const agent = { id: 'https://agent.example', ed25519: signer, p256: other, rsa: other }
  const scene = { agent, stranger: other, authority: HOST, nowS: NOW_S }
  const { headers } = made(scene, { agent: `"${agent.id}"`, components: bareAgent(scene) })
  const rawHeaders = ['Host', HOST, ...headers, 'Signature-Key', `sig1=${hwk(other)}`]
  assert.equal(shown(checker()(rawHeaders)), `no-key ${agent.id} ${signer.key.thumbprint}`)
})

test('bare keys of one address are verified 20 times a second', async () => {
  const check = checker()
  const rawHeaders = await sent(`sig1=${hwk(signer)}`)
  const found = Array.from({ length: 40 }, () => shown(check(rawHeaders)))
  assert.equal(found.filter((each) => each === `finding key ${signer.key.thumbprint}`).length, 20)
  assert.equal(found.at(-1), 'finding unchecked too-many')
  assert.match(String(shown(check(rawHeaders, NOW_MS + 1_000))), /^finding key /)
})

test('a nonce is required of these signatures, too, if it is set', async () => {
  const check = checker(new KeyBook(), { needsNonce: true })
  assert.equal(shown(check(await sent(`sig1=${hwk(signer)}`))), 'finding failed no-nonce')
  assert.match(String(shown(check(await sent(`sig1=${hwk(signer)}`, { nonce: 'n' })))), /^finding key /)
})

test('the metadata of an issuer leads to its keys', async (t) => {
  const { server, id, fetched } = await published(t)
  server.serveJson('/.well-known/agent', { issuer: id, jwks_uri: server.url('/keys') })
  server.serveJson('/keys', keySet())
  const field = `sig1=jwks_uri;id="${id}";dwk="agent";kid="k1"`
  const place = `${id}/.well-known/agent`
  assert.equal(shown(checker()(await sent(field))), `no-key ${place} k1`)
  const book = await fetched(place, 'k1')
  assert.equal(shown(checker(book)(await sent(field))), `use proven ${id} ${signer.key.thumbprint}`)
  for (const [name, member, sending, found] of [
    ['the key of another kid', `sig1=jwks_uri;id="${id}";dwk="agent";kid="k2"`, {}, 'failed wrong'],
    ['another key', field, { by: other }, 'failed wrong'],
    ['no such kid', `sig1=jwks_uri;id="${id}";dwk="agent";kid="k9"`, {}, 'unchecked ignored-key'],
    ['a kid without alg', `sig1=jwks_uri;id="${id}";dwk="agent";kid="bare"`, {}, 'unchecked ignored-key'],
    ['a thumbprint as kid', `sig1=jwks_uri;id="${id}";dwk="agent";kid="${signer.key.thumbprint}"`, {}, null],
  ] as const) {
    const checked = checker(book)(await sent(member, sending as Sending))
    assert.equal(shown(checked), `finding ${found ?? 'unchecked ignored-key'}`, name)
  }
})

test('metadata of another issuer, or with keys at another host, proves nothing', async (t) => {
  const { server, id, fetched } = await published(t)
  const field = (dwk: string) => sent(`sig1=jwks_uri;id="${id}";dwk="${dwk}";kid="k1"`)
  const keys = server.url('/keys')
  server.serveJson('/keys', keySet())
  server.serveJson('/.well-known/other', { issuer: 'https://victim.example', jwks_uri: keys })
  server.serveJson('/.well-known/below', { issuer: `${id}/x`, jwks_uri: keys })
  server.serveJson('/.well-known/none', { jwks_uri: keys })
  server.serveJson('/.well-known/away', { issuer: id, jwks_uri: server.url('/keys', 'b.example.test') })
  server.serveJson('/.well-known/inside', { issuer: id, jwks_uri: 'https://user:word@x.example/' })
  server.serveJson('/.well-known/keyless', { issuer: id })
  server.serveJson('/.well-known/set', keySet())
  for (const dwk of ['other', 'below', 'none', 'away', 'inside', 'keyless', 'set', 'gone']) {
    const book = await fetched(`${id}/.well-known/${dwk}`, 'k1')
    assert.equal(shown(checker(book)(await field(dwk))), 'finding unchecked no-directory', dwk)
  }
})

test('a key set at a URL is a signer of its own', async (t) => {
  const { server, fetched, id } = await published(t)
  server.serveJson('/keys', keySet())
  server.serveJson('/.well-known/agent', { issuer: id, jwks_uri: server.url('/keys') })
  const [url, metadata] = [server.url('/keys'), `${id}/.well-known/agent`]
  const field = (of: string) => `sig1=jwks;url="${of}";kid="k1"`
  const book = await fetched(url, 'k1')
  assert.equal(shown(checker(book)(await sent(field(url)))), `use proven ${url} ${signer.key.thumbprint}`)
  const checked = checker(book)(await sent(field(url)))
  assert.ok(checked?.kind === 'use' && checked.keysOf === url && checked.use.goodUntilMs === NOW_MS + 120_000)
  // The metadata of an issuer is not a key set.
  const wrong = await fetched(metadata, 'k1')
  assert.equal(shown(checker(wrong)(await sent(field(metadata)))), 'finding unchecked no-directory')
})

test('keys at private addresses are not fetched', async (t) => {
  const { server, id, fetched } = await published(t, false)
  server.serveJson('/keys', keySet())
  const url = server.url('/keys')
  const book = await fetched(url, 'k1')
  assert.equal(
    shown(checker(book)(await sent(`sig1=jwks;url="${url}";kid="k1"`))),
    'finding unchecked no-directory',
  )
  assert.deepEqual([server.asked.length, id.startsWith('https://')], [0, true])
})
