import assert from 'node:assert/strict'
import type { Test } from 'tap'
import type { SignatureFinding } from '../../src/classify/verdict/proof.ts'
import { rangesIn } from '../../src/identity/address/ranges-document.ts'
import { KeyBook } from '../../src/identity/keys/key-book.ts'
import { FailureBudget } from '../../src/identity/verify/failure-budget.ts'
import { KeyDirectories } from '../../src/identity/verify/key-directories.ts'
import { type Checked, type SentRequest, SignatureCheck } from '../../src/identity/verify/signature-check.ts'
import { createLogTo } from '../../src/shared/log.ts'
import { DocumentServer, HERE, TEST_CA } from './document-server.ts'
import { newSigner, rawHeadersOf, type Signer, signed, type Wanted } from './signer.ts'

export const NOW_S = 1_795_424_600
export const NOW_MS = NOW_S * 1_000
export const HOST = 'gate.example'
export const ALGS = {
  ed25519: 'Ed25519',
  'ecdsa-p256-sha256': 'ES256',
  'ecdsa-p384-sha384': 'ES384',
  'rsa-pss-sha512': 'PS512',
} as const
export const signer = newSigner('ed25519')
export const other = newSigner('ed25519')
export const FIELDS = ['@method', '@authority', '@path', 'signature-key']

/** The key as the scheme hwk has it, with these parameters instead. */
export function hwk(
  { jwk, algorithm }: Signer,
  changes: Readonly<Record<string, string | null>> = {},
): string {
  const parameters = { ...jwk, alg: ALGS[algorithm], ...changes }
  return Object.entries(parameters).reduce(
    (text, [name, value]) => (value === null ? text : `${text};${name}="${String(value)}"`),
    'hwk',
  )
}

export interface Sending extends Partial<Omit<Wanted, 'fields'>> {
  readonly fields?: readonly string[]
  readonly by?: Signer
  /** Headers put in their place after it was signed. */
  readonly after?: Readonly<Record<string, string>>
}

/** Signed by an independent program, as the draft says: without a tag, keyid, alg or expires. */
export async function sent(field: string | null, { by = signer, after = {}, ...more }: Sending = {}) {
  const headers = { host: HOST, ...(field !== null && { 'Signature-Key': field }) }
  const wanted = { fields: FIELDS, keyId: null, tag: null, createdS: NOW_S, ...more }
  const made = await signed(by, { method: 'GET', url: `https://${HOST}/cart?id=7`, headers }, wanted)
  return rawHeadersOf({ ...made, ...after })
}

export function checker(
  book = new KeyBook(),
  rules: { needsNonce?: boolean; readsSignatureKey?: boolean } = {},
) {
  const settings = { allowPrivate: false, needsNonce: false, readsSignatureKey: true, ...rules }
  const check = new SignatureCheck(settings, book, new FailureBudget())
  return (rawHeaders: readonly string[], nowMs = NOW_MS): Checked | null => {
    const place = { address: '192.0.2.7', network: '192.0.2.7', host: 'ours' } as const
    const asked: SentRequest = {
      ...{ method: 'GET', target: '/cart?id=7', base: `https://${HOST}`, rawHeaders, ...place },
    }
    return check.check(asked, nowMs)
  }
}

export function shown(checked: Checked | null): string | null {
  if (checked === null) return null
  if (checked.kind === 'no-key') return `no-key ${checked.agentId} ${checked.thumbprint}`
  const { finding } = checked
  return [checked.kind, ...textOf(finding)].join(' ')
}

function textOf(finding: SignatureFinding): readonly string[] {
  if (finding.kind === 'key') return ['key', finding.thumbprint]
  if (finding.kind === 'proven') return ['proven', finding.agentId, finding.thumbprint]
  return [finding.kind, finding.why]
}

export function keySet() {
  const [k1, k2] = [
    { ...signer.jwk, kid: 'k1', alg: 'Ed25519' },
    { ...other.jwk, kid: 'k2', alg: 'Ed25519' },
  ]
  const p256 = newSigner()
  const unusable = { kty: 'AKP', alg: 'ML-DSA-44', kid: 'pq', pub: 'AAAA' }
  return { keys: [unusable, k1, k2, { ...p256.jwk, kid: 'bare' }] }
}

/** A signer that publishes its keys, and what a worker knows of it. */
export async function published(t: Test, allowPrivate = true) {
  const server = await DocumentServer.start(t)
  const directories = new KeyDirectories({
    registries: { of: () => ({ registries: [], card: null }), close: () => undefined },
    ...{ rangesIn, mode: 'discover', agents: new Set<string>(), allowPrivate, nowMs: () => NOW_MS },
    ...{ ca: TEST_CA, lookup: HERE, log: createLogTo('silent', { write: () => undefined }) },
  })
  t.teardown(() => directories.close())
  const fetched = async (agentId: string, kid: string) => {
    const finding = await directories.find({ kind: 'keys', agentId, thumbprint: kid, isListed: false })
    assert.ok(finding !== null)
    const book = new KeyBook()
    // No worker asks again for what is missing.
    book.take({ ...finding, askAgainMs: NOW_MS + 60_000 })
    return book
  }
  return { server, id: new URL(server.url('/')).origin, fetched }
}
