import { LRUCache } from 'lru-cache'
import { readSignatureKey, type SignatureKey } from '../../../identity/signature/signature-key.ts'
import type { GnapTokenRecord, GnapTokenStore } from '../../../store/people/gnap-tokens.ts'
import type { Decided } from '../../../store/people/gnap-grants.ts'
import { hashOfKey, looksLikeSecret } from '../api-keys.ts'
import { scopesWithin } from '../oauth/clients.ts'
import { isSignedIn, type People } from '../oauth/people.ts'
import { knownScopes, type Principal, type Scope } from '../../http/access/principal.ts'
import type { Trust, Trusted } from '../trust.ts'

/** An access token that was given out, and what it is good for now. */
export interface KnownToken {
  readonly record: GnapTokenRecord
  /** With which requests that present it have to be signed, unless it is a bearer token. */
  readonly key: SignatureKey
  readonly principal: Principal
  readonly isRevoked: boolean
}

/** Knows the principal behind an access token, and remembers for so short that a revoked one is out within a second. */
export class GnapTokens {
  readonly #store: GnapTokenStore
  readonly #trust: Trust
  readonly #people: Pick<People, 'find'> | null
  readonly #known = new LRUCache<string, Known>({
    max: KNOWN_MAX,
    ttl: REMEMBERED_MS,
  })

  constructor(store: GnapTokenStore, trust: Trust, people: Pick<People, 'find'> | null) {
    this.#store = store
    this.#trust = trust
    this.#people = people
  }

  /** What can be had with an approval now. */
  async worthOf(approved: Decided | null): Promise<Worth> {
    if (approved === null || !approved.by.startsWith(PERSON_PREFIX)) return 'all'
    const person = (await this.#people?.find(approved.by)) ?? null
    return person !== null && isSignedIn(approved.atMs, person) ? scopesWithin([...person.scopes]) : 'none'
  }

  async find(token: string): Promise<KnownToken | null> {
    if (!looksLikeSecret(token, ACCESS_PREFIX)) return null
    const hash = hashOfKey(token)
    const known = this.#known.get(hash)
    if (known === undefined) return this.#read(hash)
    if (known.token === null) return null
    // It is remembered for as short by itself.
    const trusted = await this.#trust.scopesOfKey(known.token.record.thumbprint)
    if (trusted !== known.trusted) {
      known.token = knownToken(known.token.record, known.token.key, trusted, known.worth)
      known.trusted = trusted
    }
    return known.token
  }

  /** After a change made here, which is then in force at once. */
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

/** What whoever has approved something can give now: all, nothing any more, or these. */
export type Worth = 'all' | 'none' | readonly Scope[]

export function isWorth(worth: Worth, action: string): boolean {
  return worth === 'all' || (worth !== 'none' && worth.includes(action as Scope))
}

/** Whether a key that is trusted may do this. */
export function mayHave({ scopes }: Trusted, action: string): boolean {
  return scopes.has('admin') || scopes.has(action as Scope)
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

interface Known {
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
    ...{ record, key },
    isRevoked: revokedAtMs !== null || (isApproved ? worth === 'none' : trusted === null),
    principal: {
      id: instanceIdOf(thumbprint),
      name: trusted?.name ?? record.name,
      scopes: new Set(knownScopes(record.scopes).filter(isStillGood)),
      plan: trusted?.plan ?? 'standard',
      expiresAtMs,
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
/** Of those who sign in; with them goes what they have approved. */
const PERSON_PREFIX = 'usr_'
const KNOWN_MAX = 10_000
const REMEMBERED_MS = 500
