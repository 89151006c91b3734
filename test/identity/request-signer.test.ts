import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'tap'
import { readKeySet } from '../../src/identity/keys/agent-document.ts'
import { directoryProof } from '../../src/identity/verify/directory-signature.ts'
import { verifySignature } from '../../src/identity/verify/http-signature.ts'
import { directoryHeaders, directoryText } from '../../src/identity/keys/own-directory.ts'
import { contentDigestOf, signAsAgent, signRequest } from '../../src/identity/keys/request-signer.ts'
import {
  makeSigningKey,
  readSigningKeys,
  SIGNING_ALGORITHMS,
  signingKeysText,
} from '../../src/identity/keys/signing-key.ts'
import { readBotSignature } from '../../src/identity/verify/web-bot-auth.ts'

const NOW_MS = Date.UTC(2026, 10, 23, 9)
const NOW_S = NOW_MS / 1_000
const RULES = { allowPrivate: false }
const REQUEST = {
  ...{ method: 'POST', base: 'https://gate.example', target: '/a?b=c' },
  rawHeaders: ['Host', 'gate.example', 'Content-Digest', contentDigestOf('{}')],
}
const AGENT = { agent: 'https://agent.example', createdS: NOW_S, expiresS: NOW_S + 300 } as const

test('what is signed as an agent, in either form and with each kind of key, is what is verified', async () => {
  for (const algorithm of SIGNING_ALGORITHMS) {
    const key = makeSigningKey(algorithm)
    const [known] = readKeySet(JSON.parse(directoryText([key])), RULES)
    assert.equal(known!.thumbprint, key.thumbprint)
    for (const form of ['dictionary', 'string'] as const) {
      for (const components of [undefined, ['@method', '@target-uri', 'content-digest', '@authority']]) {
        const covered = form === 'string' ? 'signature-agent' : 'signature-agent;key=sig1'
        const wanted = {
          ...AGENT,
          form,
          nonce: 'n',
          ...(components && { components: [...components, covered] }),
        }
        const headers = signAsAgent(REQUEST, wanted, key)
        const signed = { ...REQUEST, rawHeaders: [...REQUEST.rawHeaders, ...headers] }
        const read = readBotSignature(signed, RULES, NOW_MS)
        assert.ok(read.kind === 'signature', JSON.stringify(read))
        assert.deepEqual([read.agentId, read.thumbprint], [AGENT.agent, key.thumbprint])
        assert.equal(verifySignature(read.signature, known!), null)
        const moved = readBotSignature({ ...signed, base: 'https://other.example' }, RULES, NOW_MS)
        assert.ok(moved.kind === 'signature')
        assert.equal(verifySignature(moved.signature, known!), 'wrong')
      }
    }
  }
})

test('refuses to sign components that the request does not have', async () => {
  const key = makeSigningKey()
  for (const component of ['date', 'signature-agent;key=x', '@nonsense', 'content-digest;tr', '@query-param'])
    assert.throws(
      () =>
        signRequest(REQUEST, { ...AGENT, label: 'a', components: [component], nonce: null, tag: null }, key),
      { code: 'SIGNATURE_COMPONENT' },
      component,
    )
})

test('keys are kept and read again, as JWK, as a set, and as PEM; others are refused without a word of them', async () => {
  const keys = SIGNING_ALGORITHMS.map((algorithm) => makeSigningKey(algorithm))
  const read = readSigningKeys(signingKeysText(keys))
  assert.deepEqual(
    read.map(({ thumbprint }) => thumbprint),
    keys.map(({ thumbprint }) => thumbprint),
  )
  const pem = keys[1]!.key.export({ format: 'pem', type: 'pkcs8' }) as string
  assert.equal(readSigningKeys(pem)[0].thumbprint, keys[1]!.thumbprint)
  const jwk = keys[0]!.key.export({ format: 'jwk' })
  assert.equal(readSigningKeys(JSON.stringify(jwk))[0].thumbprint, keys[0]!.thumbprint)
  const secret = 'c2VjcmV0LXNlY3JldA'
  const bad = [
    '',
    '[]',
    'null',
    '{}',
    '{"keys":[]}',
    '{"keys":[1]}',
    JSON.stringify({ kty: 'oct', k: secret }),
    JSON.stringify({ ...jwk, d: undefined }),
    JSON.stringify({ ...jwk, d: secret }),
    JSON.stringify({ keys: Array(9).fill(jwk) }),
    generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey.export({
      format: 'pem',
      type: 'pkcs8',
    }) as string,
    generateKeyPairSync('x25519').privateKey.export({ format: 'pem', type: 'pkcs8' }) as string,
  ]
  for (const text of bad)
    assert.throws(
      () => readSigningKeys(text),
      (error: Error & { code?: string }) => {
        assert.equal(error.code, 'SIGNING_KEY_INVALID', text.slice(0, 40))
        return !error.message.includes(secret)
      },
    )
})

test('our own directory says nothing secret, and is signed by each key, for the host that is asked, in its time', async () => {
  const keys = [makeSigningKey(), makeSigningKey('ecdsa-p256-sha256')]
  const text = directoryText(keys)
  for (const { key } of keys) assert.ok(!text.includes(key.export({ format: 'jwk' }).d!))
  const known = readKeySet(JSON.parse(text), RULES)
  const headers = Object.fromEntries(
    Object.entries(directoryHeaders(keys, 'gate.example:9080', NOW_S)).map(([name, value]) => [
      name.toLowerCase(),
      value,
    ]),
  )
  const proofAt = (host: string, keys = known, nowMs = NOW_MS, sent = text) =>
    directoryProof({ url: `https://${host}/directory`, headers, body: Buffer.from(sent) }, keys, nowMs)!
  const proof = proofAt('gate.example:9080')
  assert.equal(proof.keys.length, 2)
  assert.ok(proof.untilMs > NOW_MS + 3_600_000)
  assert.deepEqual(proofAt('mirror.example').keys, [])
  assert.deepEqual(proofAt('gate.example:9080', known, NOW_MS + 9e6).keys, [])
  assert.deepEqual(proofAt('gate.example:9080', known.slice(1)).keys.length, 1)
  assert.deepEqual(proofAt('gate.example:9080', known, NOW_MS, `${text} `).keys, [])
})
