import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import type { AgentKey } from '../../src/identity/agent-key.ts'
import { readSignatureKey } from '../../src/identity/signature-key.ts'
import { readKeySet } from '../../src/identity/agent-document.ts'
import { type DirectoryAnswer, directoryProof } from '../../src/identity/directory-signature.ts'
import { directoryHeaders, type DirectoryWanted } from './directory-headers.ts'
import { contentDigest, newSigner, type Signer } from './signer.ts'

const [vector] = JSON.parse(readFileSync('test/vectors/signed-directories.json', 'utf8')) as readonly [Vector]
const NOW_S = 1_795_000_000
const HOST = 'agent.example'
const [first, second, stranger] = [newSigner('ed25519'), newSigner(), newSigner('ed25519')]
const keys = keysOf(first, second)

interface Vector {
  /** Its thumbprint. */
  readonly key: string
  readonly now: number
  readonly host: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly others: readonly string[]
}

async function proof(signers: readonly Signer[], wanted: Partial<DirectoryWanted> = {}, host = HOST) {
  const headers = await directoryHeaders(signers, { host: HOST, createdS: NOW_S, ...wanted })
  return directoryProof(answered(headers), host, keys, NOW_S * 1_000)
}

test('an answer that is not signed, or for something else, says nothing of its keys', async () => {
  assert.equal(directoryProof(answered({}), HOST, keys, NOW_S * 1_000), null)
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
  const found = directoryProof(answered(merged), HOST, keys, NOW_S * 1_000)
  assert.deepEqual([names(found).length, found?.untilMs], [2, (NOW_S + 90) * 1_000])
})

test('of a host with a port the port is signed, and a key may be named as its owner calls it', async () => {
  assert.deepEqual(names(await proof([first], { host: `${HOST}:8443` }, `${HOST}:8443`)), [
    first.key.thumbprint,
  ])
  const named = keysOf({ ...first, jwk: { ...first.jwk, kid: 'mine' } })
  const headers = await directoryHeaders([first], { host: HOST, createdS: NOW_S, keyId: 'mine' })
  assert.equal(directoryProof(answered(headers), HOST, named, NOW_S * 1_000)?.keys.length, 1)
})

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
  ['that is good for longer than a hundred years', [first], { expiresS: NOW_S + 86_400 * 36_525 + 1 }],
  ['of another algorithm, as it says', [first], { algorithm: 'ecdsa-p256-sha256' }],
  ['that covers nothing', [first], { fields: [] }],
  ['of its status', [first], { fields: ['@status'] }],
  ['of its status, too', [first], { fields: ['@authority;req', '@status'] }],
  ['of the method of the request', [first], { fields: ['@method;req'] }],
]

for (const [title, signers, wanted] of BAD)
  test(`a signature ${title} proves no key`, async () => {
    assert.deepEqual((await proof(signers, wanted))?.keys, [])
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
    { signature, 'signature-input': [input, input] as unknown as string },
    { signature: signature.replace('sig1', 'sig2'), 'signature-input': input },
    { signature, 'signature-input': `${input};${'x'.repeat(9_000)}` },
  ])
    assert.deepEqual(
      directoryProof(answered(headers), HOST, keys, NOW_S * 1_000)?.keys,
      [],
      JSON.stringify(headers),
    )
  const bytes = Buffer.from(/:(.*):/.exec(signature)![1]!, 'base64')
  for (let i = 0; i < bytes.length; i++) {
    const turned = Buffer.from(bytes)
    turned[i]! ^= 1
    const headers = { 'signature-input': input, signature: `sig1=:${turned.toString('base64')}:` }
    assert.deepEqual(directoryProof(answered(headers), HOST, keys, NOW_S * 1_000)?.keys, [], `byte ${i}`)
  }
})

test('what the answer has besides may be signed with it, and its body by a digest', async () => {
  const body = '{"keys":[]}'
  const fields = ['@authority;req', 'content-digest', 'content-type']
  const more = { 'content-digest': contentDigest(body), 'content-type': 'application/json' }
  const headers = await directoryHeaders([first], { host: HOST, createdS: NOW_S, fields, more })
  const found = (changed: Record<string, string | undefined>, sent = body) =>
    names(directoryProof(answered({ ...headers, ...changed }, sent), HOST, keys, NOW_S * 1_000)).length
  assert.equal(found({}), 1)
  assert.equal(found({}, `${body} `), 0)
  assert.equal(found({ 'content-digest': contentDigest(`${body} `) }, `${body} `), 0)
  assert.equal(found({ 'content-digest': 'md5=:AAAA:' }), 0)
  assert.equal(found({ 'content-type': 'text/plain' }), 0)
  assert.equal(found({ 'content-type': undefined }), 0)
})

test('the vector of draft-meunier-webbotauth-httpsig-protocol-02: a signed directory response', async () => {
  const { key, now, host, headers, body, others } = vector
  const read = readSignatureKey(JSON.parse(body).keys[0], true)
  assert.ok(read.kind === 'key')
  assert.equal(read.key.thumbprint, key)
  const agentKeys = [read.key] as unknown as readonly AgentKey[]
  const at = (each: string, sent = body) =>
    directoryProof(answered(headers, sent), each, agentKeys, now * 1_000)
  assert.deepEqual(names(at(host)), [key])
  for (const other of others) assert.deepEqual(names(at(other)), [])
  assert.deepEqual(names(at(host, `${body}\n`)), [])
})

function answered(headers: Readonly<Record<string, string | undefined>>, body = ''): DirectoryAnswer {
  return { headers, body: Buffer.from(body) }
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
