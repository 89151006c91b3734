import { LRUCache } from 'lru-cache'
import { readSignatureKey, type SignatureKey } from '../../../identity/signature-key.ts'
import type { GnapTokenRecord } from '../../../store/gnap-tokens.ts'
import type { Store } from '../../../store/store.ts'
import { hashOfKey, looksLikeSecret } from '../api-keys.ts'
import { PLANS, type Plan, type Principal, SCOPES, type Scope } from '../principal.ts'

/** An access token that was given out, and what it is good for now. */
export interface KnownToken {
  readonly record: GnapTokenRecord
  /** With which requests that present it have to be signed, unless it is a bearer token. */
  readonly key: SignatureKey
  readonly principal: Principal
  readonly isRevoked: boolean
}

/** What a key may do; `null`: nobody has said so. */
export interface TrustedKey {
  readonly name: string | null
  readonly plan: Plan
  readonly jwk: Readonly<Record<string, unknown>> | null
  mayHave(action: string): boolean
}

/** Knows the principal behind an access token, and remembers for so short that a revoked one is out within a second. */
export class GnapTokens {
  readonly #store: Store
  readonly #known = new LRUCache<string, { readonly token: KnownToken | null }>({
    max: KNOWN_MAX,
    ttl: REMEMBERED_MS,
  })

  constructor(store: Store) {
    this.#store = store
  }

  async find(token: string): Promise<KnownToken | null> {
    if (!looksLikeSecret(token, ACCESS_PREFIX)) return null
    const hash = hashOfKey(token)
    const known = this.#known.get(hash)
    if (known !== undefined) return known.token
    const record = await this.#store.gnapTokens.byHash(hash)
    const found = record === null ? null : await knownToken(record, this.#store)
    this.#known.set(hash, { token: found })
    return found
  }

  /** After a change made here, which is then in force at once. */
  forget(): void {
    this.#known.clear()
  }
}

export async function trustedKey(thumbprint: string, { trust }: Store): Promise<TrustedKey | null> {
  const found = await trust.of('key', thumbprint)
  if (found === null) return null
  const { name, scopes, document: jwk } = found
  return {
    ...{ name, jwk },
    plan: PLANS.find((plan) => plan === found.plan) ?? 'free',
    mayHave: (action) => scopes.includes('admin') || scopes.includes(action),
  }
}

/** What is kept of a key, so that it can be read again. */
export function keptJwk({ key, kid, algorithm }: SignatureKey): Readonly<Record<string, unknown>> {
  return { ...key.export({ format: 'jwk' }), ...(kid === null ? {} : { kid }), alg: ALGS[algorithm] }
}

/** What was kept. */
export function keyKept(jwk: Readonly<Record<string, unknown>>): SignatureKey {
  const read = readSignatureKey(jwk)
  if (read.kind === 'refused') throw new Error(`a key that was kept is none: ${read.member} ${read.detail}`)
  return read.key
}

/** `gnk_` and the key's thumbprint. */
export function instanceIdOf(thumbprint: string): string {
  return `${INSTANCE_PREFIX}${thumbprint}`
}

async function knownToken(record: GnapTokenRecord, store: Store): Promise<KnownToken> {
  const trust = await trustedKey(record.thumbprint, store)
  const mayHave = (scope: Scope) =>
    record.scopes.includes(scope) && (record.isApproved || trust?.mayHave(scope))
  const scopes = SCOPES.filter(mayHave)
  return {
    record,
    key: keyKept(record.jwk),
    isRevoked: record.revokedAtMs !== null || (trust === null && !record.isApproved),
    principal: {
      id: instanceIdOf(record.thumbprint),
      name: trust?.name ?? record.name,
      scopes: new Set(scopes),
      plan: trust?.plan ?? 'standard',
      expiresAtMs: record.expiresAtMs,
    },
  }
}

const ALGS: Readonly<Record<SignatureKey['algorithm'], string>> = {
  ed25519: 'EdDSA',
  'ecdsa-p256-sha256': 'ES256',
  'ecdsa-p384-sha384': 'ES384',
  'rsa-pss-sha512': 'PS512',
}
export const INSTANCE_PREFIX = 'gnk_'
export const ACCESS_PREFIX = 'gna_'
export const MANAGE_PREFIX = 'gnm_'
export const CONTINUE_PREFIX = 'gnc_'
export const INTERACT_PREFIX = 'gni_'
const KNOWN_MAX = 10_000
const REMEMBERED_MS = 500
