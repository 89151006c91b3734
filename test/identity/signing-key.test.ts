import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { verifyBytes } from '../../src/identity/verify/http-signature.ts'
import { readSignatureKey, type SignatureKey } from '../../src/identity/signature/signature-key.ts'
import { readSigningKeys, signBase } from '../../src/identity/keys/signing-key.ts'

interface Signed {
  readonly name: string
  readonly key: string
  readonly base: string | null
  readonly request: { readonly headers: readonly (readonly [name: string, value: string])[] }
}

const vectors: {
  readonly keys: Readonly<Record<string, unknown>>
  readonly private: Readonly<Record<string, object>>
  readonly signatures: readonly Signed[]
  readonly responses: readonly (Omit<Signed, 'request'> & {
    readonly base: string
    readonly signature: string
  })[]
} = JSON.parse(readFileSync('test/vectors/http-signatures.json', 'utf8'))

test('with the private halves of RFC 9421 what is signed there is signed here, as far as it is the same each time', async () => {
  let same = 0
  for (const { name, key, base, request } of vectors.signatures) {
    const own = vectors.private[key]
    if (own === undefined || base === null || name.startsWith('B.2.5')) continue
    const [signing] = readSigningKeys(JSON.stringify(own))
    const bytes = signBase(signing, base)
    assert.equal(verifyBytes(publicKey(key), base, bytes), true, name)
    if (signing.algorithm !== 'ed25519') continue
    const [, given] = request.headers.find(([header]) => header === 'Signature')!
    assert.ok(given.includes(`=:${bytes.toString('base64')}:`), name)
    same++
  }
  assert.ok(same >= 3, `${same}`)
})

for (const { name, key, base, signature } of vectors.responses)
  test(`vector: ${name}`, async () => {
    const bytes = Buffer.from(signature, 'base64')
    assert.equal(verifyBytes(publicKey(key), base, bytes), true)
    assert.equal(verifyBytes(publicKey(key), base.replace('200', '201'), bytes), false)
    for (const other of Object.keys(vectors.keys).filter((each) => each !== key))
      assert.equal(verifyBytes(publicKey(other), base, bytes), false, other)
  })

test('whatever signs, knows its own thumbprint as those do who have its public half', async () => {
  for (const [name, own] of Object.entries(vectors.private))
    assert.equal(readSigningKeys(JSON.stringify(own))[0].thumbprint, publicKey(name).thumbprint)
})

function publicKey(name: string): SignatureKey {
  const read = readSignatureKey(vectors.keys[name], true)
  assert.ok(read.kind === 'key')
  return read.key
}
