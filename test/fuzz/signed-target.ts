import assert from 'node:assert/strict'
import {
  type Dictionary,
  isInnerList,
  parseDictionary,
  serializeInnerList,
  serializeItem,
} from 'structured-headers'
import { readContentDigest } from '../../src/identity/signature/content-digest.ts'
import {
  type SignaturePolicy,
  readSignatures,
  replayIdOf,
  verifySignature,
} from '../../src/identity/verify/http-signature.ts'
import { type LabelledSignature, readSignatureFields } from '../../src/identity/signature/signature-fields.ts'
import {
  innerListText,
  itemText,
  readDictionary,
  readDistinctDictionary,
} from '../../src/identity/signature/structured-text.ts'
import { readBotSignature } from '../../src/identity/verify/web-bot-auth.ts'
import { signRequest, signAsAgent } from '../../src/identity/keys/request-signer.ts'
import { readSigningKeys } from '../../src/identity/keys/signing-key.ts'
import { readSignatureKey, type SignatureKey } from '../../src/identity/signature/signature-key.ts'
import { fixedKey } from './fixed-key.ts'

/**
 * A request with signatures: whatever is in it, it is read or refused. Structured fields are what the strict parser of
 * others says; what was signed has a line for each thing that is covered, and no more; and an uncovered part changes
 * nothing of it.
 *
 * The first line is the target, then a line for each field.
 */
export function signed(bytes: Buffer): void {
  const [target = '', ...lines] = bytes.toString('latin1').split('\n')
  const rawHeaders = lines.flatMap((line) => {
    const colon = line.indexOf(':')
    return colon === -1 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1)]
  })
  const values = rawHeaders.filter((_, i) => i % 2 === 1).map((value) => value.trim())
  for (const value of values) structured(value)
  for (const digest of readContentDigest(rawHeaders)?.values() ?? [])
    assert.ok(digest.length === 32 || digest.length === 64)
  const request = { method: 'POST', base: 'https://gate.example', target, rawHeaders }
  for (const policy of POLICIES) {
    const read = readSignatures(request, policy, NOW_MS)
    const fields = readSignatureFields(rawHeaders, policy.fieldLengthMax)
    if (read.kind === 'refused') continue
    assert.ok(fields.kind === 'signatures')
    for (const signature of read.signatures) {
      const { input }: LabelledSignature = fields.signatures.find(({ label }) => label === signature.label)!
      const { base, components } = signature
      const said = base.split('\n')
      assert.equal(said.length, components.length + 1)
      assert.equal(said.at(-1), `"@signature-params": ${serializeInnerList(input)}`)
      for (const [i, item] of input[0].entries()) assert.ok(said[i]!.startsWith(`${serializeItem(item)}: `))
      assert.match(base, /^[\t\n\x20-\x7e]*$/)
      assert.equal(new Set(said.map((line) => line.slice(0, line.indexOf(': ')))).size, said.length)
      assert.ok(signature.goodUntilMs > NOW_MS && signature.createdS * 1000 <= NOW_MS + policy.skewS * 1000)
      assert.match(replayIdOf(signature, PUBLIC_KEY), /^[\w-]{43}$/)
      const wrong = verifySignature(signature, PUBLIC_KEY)
      assert.ok(wrong === null || wrong === 'wrong' || wrong === 'other-algorithm')
    }
    // Names in another case, another order of other names, and an uncovered field.
    const others = rawHeaders.map((text, i) => (i % 2 === 0 ? text.toUpperCase() : text))
    const more = ['X-Not-Covered', '1', ...others]
    assert.deepEqual(readSignatures({ ...request, rawHeaders: more }, policy, NOW_MS), read)
  }
  const bot = readBotSignature(request, { allowPrivate: false }, NOW_MS)
  if (bot.kind === 'signature') assert.match(bot.agentId, /^https:\/\/[^\s"\\]+$/)
}

/** As it is read by others; written again it is what they write, and reads the same. */
function structured(text: string): void {
  const theirs = attempt(() => parseDictionary(text))
  const ours = attempt(() => readDictionary(text))
  assert.deepEqual(ours, theirs)
  const distinct = attempt(() => readDistinctDictionary(text))
  if (distinct !== null) assert.deepEqual(distinct, theirs)
  if (ours === null) return
  for (const [key, member] of ours) {
    const written = isInnerList(member) ? innerListText(member) : itemText(member)
    assert.equal(written, isInnerList(member) ? serializeInnerList(member) : serializeItem(member))
    const again = readDistinctDictionary(`${key}=${written}`)
    assert.deepEqual([...again], [[key, member]])
  }
}

function attempt(read: () => Dictionary): Dictionary | null {
  try {
    return read()
  } catch (error) {
    assert.ok(error instanceof Error)
    return null
  }
}

function publicKey(): SignatureKey {
  const read = readSignatureKey(KEY.jwk)
  assert.ok(read.kind === 'key')
  return read.key
}

export function signedSeeds(): Buffer[] {
  const request = {
    ...{ method: 'POST', base: 'https://gate.example', target: '/a/b?c=d&e=%20f' },
    rawHeaders: ['Host', 'gate.example', 'Content-Digest', DIGEST, 'Priority', 'u=1, i', 'X-A', ' a  b '],
  }
  const wanted = { label: 'sig1', createdS: NOW_S, expiresS: NOW_S + 60, nonce: 'n', tag: 'web-bot-auth' }
  const components = [
    ['@authority'],
    ['@method', '@target-uri', 'content-digest'],
    ['@authority', '@path', '@query', '@scheme', '@request-target', 'x-a', 'priority'],
    ['@authority', 'content-digest;key=sha-256', '@query-param;name=c'],
  ]
  const made = components.flatMap((list) => [
    signRequest(request, { ...wanted, components: list }, KEY),
    signAsAgent(
      request,
      { ...wanted, components: list, agent: 'https://agent.example', form: 'dictionary' },
      KEY,
    ),
  ])
  const fields = [
    'sig1=("@authority";req "signature-agent";key="s" "x-a";bs "priority";sf);created=1735689600;keyid="k"',
    'a=?1, b=1.5, c=-1, d=tok/en, e=@1735689600, f=%"f%c3%bc", g=:AA==:, h="\\"\\\\", i;j=1;k, l=()',
    'a=1, a=2, b=(1 2);c;c=2',
    'a=:AB==:, b=:A:, c=999999999999999, d=1000000000000000',
  ]
  const heads = [request.rawHeaders, ...made.map((more) => [...request.rawHeaders, ...more])]
  const others = fields.map((text) => ['Signature-Input', text, 'Signature', text, 'Signature-Agent', text])
  return [...heads, ...others].map((list) => {
    const lines = Array.from({ length: list.length / 2 }, (_, i) => `${list[2 * i]}: ${list[2 * i + 1]}`)
    return Buffer.from([request.target, ...lines].join('\n'), 'latin1')
  })
}

const NOW_S = 1_735_689_600
const NOW_MS = NOW_S * 1000
const [KEY] = readSigningKeys(fixedKey())
const PUBLIC_KEY = publicKey()
const DIGEST = 'sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:'
const LOOSE: SignaturePolicy = {
  ...{ tag: null, covers: [], needsExpiry: false, fieldLengthMax: 8192, ageMaxS: 86_400, skewS: 60 },
}
const POLICIES: readonly SignaturePolicy[] = [
  LOOSE,
  {
    ...LOOSE,
    ...{
      tag: 'web-bot-auth',
      covers: [['@authority', '@target-uri']],
      needsExpiry: true,
      fieldLengthMax: 2048,
    },
  },
]
