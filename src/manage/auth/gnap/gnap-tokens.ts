import { ALL_APPS, type AppScope, NO_APPS } from '../../../apps/app-scope.ts'
import { LateCache } from '../../../shared/late-cache.ts'
import { readSignatureKey, type SignatureKey } from '../../../identity/signature/signature-key.ts'
import type { GnapTokenRecord, GnapTokenStore } from '../../../store/people/gnap-tokens.ts'
import type { Decided } from '../../../store/people/gnap-grants.ts'
import { hashOfKey, looksLikeSecret } from '../api-keys.ts'
import { scopesWithin } from '../oauth/clients.ts'
import { isSignedIn, type People } from '../oauth/people.ts'
import { knownScopes, type Principal, type Scope } from '../../http/access/principal.ts'
import type { Trust, Trusted } from '../trust.ts'

/** An issued access token and its current access. */
export interface KnownToken {
  readonly record: GnapTokenRecord
  /** Requests that present the token must be signed with this key, unless it is a bearer token. */
  readonly key: SignatureKey
  readonly principal: Principal
  readonly isRevoked: boolean
}

/**
 * Finds the principal of an access token. Caches it for 500 ms, so that a revoked token stops working within
 * a second.
 */
export class GnapTokens {
  readonly #store: GnapTokenStore
  readonly #trust: Trust
  readonly #people: Pick<People, 'find'> | null
  readonly #known = new LateCache<CachedGnapToken>({
    max: KNOWN_MAX,
    ttl: REMEMBERED_MS,
  })

  constructor(store: GnapTokenStore, trust: Trust, people: Pick<People, 'find'> | null) {
    this.#store = store
    this.#trust = trust
    this.#people = people
  }

  /** The access that an approval still gives. */
  async worthOf(approved: Decided | null): Promise<Worth> {
    if (approved === null || !approved.by.startsWith(PERSON_PREFIX)) return 'all'
    const person = (await this.#people?.find(approved.by)) ?? null
    if (person === null || !isSignedIn(approved.atMs, person)) return 'none'
    return { scopes: scopesWithin([...person.scopes]), apps: person.apps }
  }

  async find(token: string): Promise<KnownToken | null> {
    if (!looksLikeSecret(token, ACCESS_PREFIX)) return null
    const hash = hashOfKey(token)
    const known = this.#known.get(hash)
    if (known === undefined) return this.#read(hash)
    if (known.token === null) return null
    // `Trust` caches its own answer for 500 ms, so this check is cheap.
    const trusted = await this.#trust.scopesOfKey(known.token.record.thumbprint)
    if (trusted !== known.trusted) {
      known.token = knownToken(known.token.record, known.token.key, trusted, known.worth)
      known.trusted = trusted
    }
    return known.token
  }

  /** Clears the cache after a change in this process, so that the change takes effect at once. */
  forget(): void {
    this.#known.clear()
  }

  async #read(hash: string): Promise<KnownToken | null> {
    const record = await this.#store.byHash(hash)
    const trusted = record === null ? null : await this.#trust.scopesOfKey(record.thumbprint)
    const worth = record === null ? 'none' : await this.worthOf(record.approved)
    const token = record === null ? null : knownToken(record, keyKept(record.jwk), trusted, worth)
    this.#known.set(hash, { token, trusted, worth })
    return token
  }
}

/** The access that an approval still gives: everything, nothing, or that of the person who approved. */
type Worth = 'all' | 'none' | { readonly scopes: readonly Scope[]; readonly apps: AppScope }

export function isWorth(worth: Worth, action: string): boolean {
  return worth === 'all' || (worth !== 'none' && worth.scopes.includes(action as Scope))
}

/** Whether a trusted key has this scope. */
export function mayHave({ scopes }: Trusted, action: string): boolean {
  return scopes.has('admin') || scopes.has(action as Scope)
}

/** The key in the form in which it is stored. */
export function keptJwk({ key, kid, algorithm }: SignatureKey): Readonly<Record<string, unknown>> {
  return { ...key.export({ format: 'jwk' }), ...(kid === null ? {} : { kid }), alg: ALGS[algorithm] }
}

/** Reads a stored key. */
export function keyKept(jwk: Readonly<Record<string, unknown>>): SignatureKey {
  const read = readSignatureKey(jwk)
  if (read.kind === 'refused') throw new Error(`a stored key is invalid: ${read.member} ${read.detail}`)
  return read.key
}

/** `gnk_` and the key's thumbprint. */
export function instanceIdOf(thumbprint: string): string {
  return `${INSTANCE_PREFIX}${thumbprint}`
}

interface CachedGnapToken {
  token: KnownToken | null
  trusted: Trusted | null
  readonly worth: Worth
}

function knownToken(
  record: GnapTokenRecord,
  key: SignatureKey,
  trusted: Trusted | null,
  worth: Worth,
): KnownToken {
  const { thumbprint, isApproved, revokedAtMs, expiresAtMs } = record
  const isStillGood = (scope: Scope) =>
    isApproved ? isWorth(worth, scope) : trusted !== null && mayHave(trusted, scope)
  return {
    record,
    key,
    isRevoked: revokedAtMs !== null || (isApproved ? worth === 'none' : trusted === null),
    principal: {
      id: instanceIdOf(thumbprint),
      name: trusted?.name ?? record.name,
      scopes: new Set(knownScopes(record.scopes).filter(isStillGood)),
      apps: isApproved ? appsOf(worth) : (trusted?.apps ?? NO_APPS),
      plan: trusted?.plan ?? 'standard',
      expiresAtMs,
    },
  }
}

function appsOf(worth: Worth): AppScope {
  if (worth === 'all') return ALL_APPS
  return worth === 'none' ? NO_APPS : worth.apps
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
/** The id prefix of people with an account. An approval by such a person ends with their access. */
const PERSON_PREFIX = 'usr_'
const KNOWN_MAX = 10_000
const REMEMBERED_MS = 500
