import assert from 'node:assert/strict'
import { sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { test } from 'tap'
import type { AgentKey } from '../../src/identity/keys/agent-key.ts'
import { readSignatureKey } from '../../src/identity/signature/signature-key.ts'
import { readKeySet } from '../../src/identity/keys/agent-document.ts'
import { directoryProof } from '../../src/identity/verify/directory-signature.ts'
import { directoryHeaders, type DirectoryWanted } from './directory-headers.ts'
import { contentDigest, newSigner, type Signer } from './signer.ts'

const [vector] = JSON.parse(readFileSync('test/vectors/signed-directories.json', 'utf8')) as readonly [Vector]
const NOW_S = 1_795_000_000
const HOST = 'agent.example'
const BODY = Buffer.from('the keys, as they are sent')
const [first, second, stranger] = [newSigner('ed25519'), newSigner(), newSigner('ed25519')]
const keys = keysOf(first, second)

async function proof(signers: readonly Signer[], wanted: Partial<DirectoryWanted> = {}, host = HOST) {
  const headers = await directoryHeaders(signers, { host: HOST, createdS: NOW_S, ...wanted })
  return proofOf(headers, host)
}

function proofOf(headers: IncomingHttpHeaders, host = HOST, own = keys) {
  const url = `https://${host}/.well-known/http-message-signatures-directory`
  return directoryProof({ url, headers, body: BODY }, own, NOW_S * 1_000)
}

test('an answer that is not signed, or for something else, says nothing of its keys', async () => {
  assert.equal(proofOf({}), null)
  assert.equal(await proof([first], { tag: 'web-bot-auth' }), null)
})

test('only keys that have signed it count, until the first of their signatures ends', async () => {
  const both = await proof([first, second])
  assert.deepEqual(names(both), [first, second].map(thumbprintOf))
  const one = await proof([first])
  assert.deepEqual(names(one), [first.key.thumbprint])
  // A minute, by which clocks may differ.
  assert.equal(one?.untilMs, (NOW_S + 300 + 60) * 1_000)
  const early = await directoryHeaders([first], { host: HOST, createdS: NOW_S, expiresS: NOW_S + 30 })
  const late = await directoryHeaders([second], { host: HOST, createdS: NOW_S, expiresS: NOW_S + 900 })
  const merged = {
    'signature-input': `${early['signature-input']}, ${late['signature-input']!.replace('sig1', 'sig2')}`,
    signature: `${early['signature']}, ${late['signature']!.replace('sig1', 'sig2')}`,
  }
  const found = proofOf(merged)
  assert.deepEqual([names(found).length, found?.untilMs], [2, (NOW_S + 90) * 1_000])
})

test('of a host with a port the port is signed, and a key may be named as its owner calls it', async () => {
  assert.deepEqual(names(await proof([first], { host: `${HOST}:8443` }, `${HOST}:8443`)), [
    first.key.thumbprint,
  ])
  const named = keysOf({ ...first, jwk: { ...first.jwk, kid: 'mine' } })
  const headers = await directoryHeaders([first], { host: HOST, createdS: NOW_S, keyId: 'mine' })
  assert.equal(proofOf(headers, HOST, named)?.keys.length, 1)
})

const withDigest = (body: string | Buffer) => ({ headers: { 'content-digest': contentDigest(body) } })
const EMPTY_DIGEST = { headers: { 'content-digest': '' } }
const ABSENT = { headers: { 'x-absent': 'yes' } }
const BAD: readonly (readonly [
  title: string,
  signers: readonly Signer[],
  wanted: Partial<DirectoryWanted>,
])[] = [
  ['for another host', [first], { host: 'other.example' }],
  ['for the host with a port', [first], { host: `${HOST}:8443` }],
  ['by a key that is not in it', [stranger], {}],
  ['by one key in the name of another', [stranger], { keyId: first.key.thumbprint }],
  ['that has expired', [first], { createdS: NOW_S - 1_000, expiresS: NOW_S - 61 }],
  ['of the future', [first], { createdS: NOW_S + 120, expiresS: NOW_S + 400 }],
  ['that never expires', [first], { expiresS: null }],
  ['of another algorithm, as it says', [first], { algorithm: 'ecdsa-p256-sha256' }],
  ['that covers nothing', [first], { fields: [] }],
  ['of its status', [first], { fields: ['@status'] }],
  ['of the method of the request', [first], { fields: ['@method;req'] }],
  ['of another body', [first], { ...withDigest('other'), fields: ['@authority;req', 'content-digest'] }],
  ['of a digest of nothing', [first], { ...EMPTY_DIGEST, fields: ['@authority;req', 'content-digest'] }],
  ['of what its answer has not', [first], { ...ABSENT, fields: ['@authority;req', 'x-absent'] }],
]

for (const [title, signers, wanted] of BAD)
  test(`a signature ${title} proves no key`, async () => {
    const headers = await directoryHeaders(signers, { host: HOST, createdS: NOW_S, ...wanted })
    delete headers['x-absent']
    assert.deepEqual(proofOf(headers)?.keys, [])
  })

test('what else of the answer, and of what was asked, may be covered, as in every draft there was', async () => {
  const headers = { ...withDigest(BODY).headers, 'content-type': 'application/json' }
  for (const fields of [
    ['@authority;req', 'content-digest'],
    ['content-digest', '@authority;req', 'content-type', '@status'],
    ['@method;req', '@path;req', '@target-uri;req', '@scheme;req', '@query;req', '@authority;req'],
  ])
    assert.equal((await proof([first, second], { headers, fields }))?.keys.length, 2, fields.join())
  const years = { expiresS: NOW_S + 86_400 * 36_500 }
  assert.equal((await proof([first], years))?.keys.length, 1, 'for a hundred years')
})

test('the first programs covered the authority of the request without saying that it is of the request', async () => {
  const input = `("@authority");created=${NOW_S};keyid="${first.key.thumbprint}";expires=${NOW_S + 300};tag="http-message-signatures-directory"`
  for (const host of [HOST, 'other.example']) {
    const base = `"@authority": ${host}\n"@signature-params": ${input}`
    const bytes = sign(null, Buffer.from(base), first.privateKey).toString('base64')
    const found = proofOf({ 'signature-input': `binding0=${input}`, signature: `binding0=:${bytes}:` })
    assert.equal(found?.keys.length, host === HOST ? 1 : 0)
  }
})

test('damaged fields, and every signature with a bit of it turned, prove no key', async () => {
  const good = await directoryHeaders([first], { host: HOST, createdS: NOW_S })
  const { signature, 'signature-input': input } = good as { signature: string; 'signature-input': string }
  for (const headers of [
    { signature },
    { 'signature-input': input },
    { signature, 'signature-input': 'sig1=(' },
    { signature, 'signature-input': input.replace(';req', '') },
    { signature, 'signature-input': input.replace('("', '("content-digest" "') },
    { signature, 'signature-input': input.replace('(', '("@authority";req ') },
    { signature, 'signature-input': input.replace(';req', ';req;sf') },
    { signature, 'signature-input': [input, input] as unknown as string },
    { signature: signature.replace('sig1', 'sig2'), 'signature-input': input },
    { signature, 'signature-input': `${input};${'x'.repeat(9_000)}` },
  ])
    assert.deepEqual(proofOf(headers)?.keys, [], JSON.stringify(headers))
  const bytes = Buffer.from(/:(.*):/.exec(signature)![1]!, 'base64')
  for (let i = 0; i < bytes.length; i++) {
    const turned = Buffer.from(bytes)
    turned[i]! ^= 1
    const headers = { 'signature-input': input, signature: `sig1=:${turned.toString('base64')}:` }
    assert.deepEqual(proofOf(headers)?.keys, [], `byte ${i}`)
  }
})

test('the vector of draft-meunier-webbotauth-httpsig-protocol-02: a signed directory response', async () => {
  const { key, now, host, headers, body, others } = vector
  const read = readSignatureKey(JSON.parse(body).keys[0], true)
  assert.ok(read.kind === 'key')
  assert.equal(read.key.thumbprint, key)
  // Everybody has the key of the draft: from a directory it is never taken.
  const own = [read.key] as unknown as readonly AgentKey[]
  const at = (each: string, sent = body) =>
    directoryProof({ url: `https://${each}/`, headers, body: Buffer.from(sent) }, own, now * 1_000)
  assert.deepEqual(names(at(host)), [key])
  for (const other of others) assert.deepEqual(names(at(other)), [])
  assert.deepEqual(names(at(host, `${body}\n`)), [])
})

interface Vector {
  /** Its thumbprint. */
  readonly key: string
  readonly now: number
  readonly host: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly others: readonly string[]
}

function keysOf(...signers: readonly Pick<Signer, 'jwk'>[]): readonly AgentKey[] {
  return readKeySet({ keys: signers.map(({ jwk }) => jwk) }, { allowPrivate: false })
}

function names(found: ReturnType<typeof directoryProof>): readonly string[] {
  return found?.keys.map(({ thumbprint }) => thumbprint) ?? []
}

function thumbprintOf({ key }: Signer): string {
  return key.thumbprint
}
