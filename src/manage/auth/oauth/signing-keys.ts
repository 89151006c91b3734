import { createPublicKey, generateKeyPairSync, type JsonWebKey, type KeyObject } from 'node:crypto'
import { calculateJwkThumbprint, type JWK } from 'jose'
import type { Log } from '../../../shared/log.ts'
import type { Queries } from '../../../store/engine/database.ts'
import type { OAuthKey } from '../../../store/people/oauth-keys.ts'
import type { Store } from '../../../store/store.ts'
import type { Sealer } from '../sealer.ts'
import { TOKEN_LIFE_MAX_S } from './denials.ts'

/** The keys at one moment. */
export interface KeySet {
  /** The key that signs now. */
  readonly signer: { readonly kid: string; readonly privateJwk: JWK }
  /** For verifiers: also the next key, and earlier keys whose tokens have not expired. */
  readonly published: readonly JWK[]
  readonly byKid: ReadonlyMap<string, KeyObject>
}

/**
 * The keys that sign access tokens (ES256). They are in the database, for all processes, with the private
 * parts sealed. The first one is created on first use. Each key is published a day before it signs, and until
 * everything it has signed has expired.
 */
export class TokenSigningKeys {
  readonly #store: Store
  readonly #sealer: Sealer
  readonly #log: Log
  readonly #rotationMs: number
  readonly #nowMs: () => number
  #set: KeySet | null = null
  #readAtMs = Number.NEGATIVE_INFINITY
  #reading: Promise<KeySet> | null = null

  constructor(store: Store, sealer: Sealer, log: Log, rotationMs: number, nowMs: () => number) {
    this.#store = store
    this.#sealer = sealer
    this.#log = log
    this.#rotationMs = rotationMs
    this.#nowMs = nowMs
  }

  /** The keys as of a few seconds ago, or older ones if the database cannot be read. */
  async current(ageMaxMs = AGE_MAX_MS): Promise<KeySet> {
    if (this.#set !== null && Math.abs(this.#nowMs() - this.#readAtMs) < ageMaxMs) return this.#set
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null
    })
    try {
      return await this.#reading
    } catch (error) {
      if (this.#set === null) throw error
      this.#log.warn('could not reload the signing keys of access tokens', { error: error as Error })
      this.#readAtMs = this.#nowMs()
      return this.#set
    }
  }

  /**
   * The key that verifies tokens with this kid. Rereads the database for an unknown kid: another process may
   * have made it.
   */
  async byKid(kid: string): Promise<KeyObject | null> {
    const known = (await this.current()).byKid.get(kid)
    return known ?? (await this.current(UNKNOWN_AGE_MS)).byKid.get(kid) ?? null
  }

  /** Like `byKid`, without waiting: only from the cache. */
  known(kid: string): KeyObject | null {
    const isRecent = Math.abs(this.#nowMs() - this.#readAtMs) < AGE_MAX_MS
    return isRecent ? (this.#set?.byKid.get(kid) ?? null) : null
  }

  /** Makes a new key that signs at once. Resolves to it and to the ids of the removed keys. */
  async rotate(dropsOld: boolean, queries: Queries): Promise<{ key: OAuthKey; dropped: readonly string[] }> {
    const nowMs = this.#nowMs()
    const keys = await this.#store.oauthKeys.all(queries)
    const gone = dropsOld ? keys : keys.filter(({ signsFromMs }) => signsFromMs > nowMs)
    for (const { number } of gone) await this.#store.oauthKeys.remove(number, queries)
    const key = await this.#made((keys[0]?.number ?? 0) + 1, nowMs)
    await this.#store.oauthKeys.add(key, queries)
    return { key, dropped: gone.map(({ kid }) => kid) }
  }

  /** Rereads the database on the next call. */
  forget(): void {
    this.#readAtMs = Number.NEGATIVE_INFINITY
  }

  /** Makes the next key when it is due, and removes keys whose tokens have all expired. */
  async keep(): Promise<void> {
    const nowMs = this.#nowMs()
    const keys = await this.#store.oauthKeys.all()
    const newest = keys[0]
    if (newest === undefined) return
    const nextFromMs = newest.signsFromMs + this.#rotationMs
    if (nowMs >= nextFromMs - this.#leadMs) {
      // After long downtime the key is late: it signs as soon as all processes have read it.
      const key = await this.#made(newest.number + 1, Math.max(nextFromMs, nowMs + LATE_MS))
      if (await this.#store.oauthKeys.add(key))
        this.#log.info('created a signing key for access tokens', { kid: key.kid })
    }
    for (const [index, { number, kid }] of keys.entries()) {
      const next = keys[index - 1]
      if (next === undefined || nowMs < next.signsFromMs + OVER_MS) continue
      await this.#store.oauthKeys.remove(number)
      this.#log.info('a signing key of access tokens has expired', { kid })
    }
    this.forget()
  }

  get #leadMs(): number {
    return Math.min(LEAD_MS, this.#rotationMs / 4)
  }

  async #read(): Promise<KeySet> {
    const nowMs = this.#nowMs()
    let keys = await this.#store.oauthKeys.all()
    if (keys.length === 0) {
      // If two processes do this at once, one of them adds its key and both read that.
      await this.#store.oauthKeys.add(await this.#made(1, nowMs))
      keys = await this.#store.oauthKeys.all()
    }
    const signer = keys.find(({ signsFromMs }) => signsFromMs <= nowMs) ?? keys.at(-1)!
    this.#set = {
      signer: await this.#signer(signer),
      published: keys.map(({ publicJwk }) => publicJwk as JWK),
      byKid: new Map(keys.map((key) => [key.kid, this.#publicKey(key)])),
    }
    this.#readAtMs = nowMs
    return this.#set
  }

  async #signer({ kid, sealed }: OAuthKey): Promise<KeySet['signer']> {
    if (this.#set?.signer.kid === kid) return this.#set.signer
    const text = await this.#sealer.open(sealed, sealedAs(kid))
    return { kid, privateJwk: JSON.parse(text.reveal()) as JWK }
  }

  #publicKey({ kid, publicJwk }: OAuthKey): KeyObject {
    return this.#set?.byKid.get(kid) ?? createPublicKey({ key: publicJwk as JsonWebKey, format: 'jwk' })
  }

  async #made(number: number, signsFromMs: number): Promise<OAuthKey> {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const { d, ...jwk } = privateKey.export({ format: 'jwk' }) as JWK
    const kid = await calculateJwkThumbprint(jwk)
    const publicJwk = { ...jwk, kid, alg: 'ES256', use: 'sig' }
    const sealed = await this.#sealer.seal(JSON.stringify({ ...publicJwk, d }), sealedAs(kid))
    return { number, kid, publicJwk, sealed, createdAtMs: this.#nowMs(), signsFromMs }
  }
}

/** The purpose a private key is sealed for: see Sealer. */
export function sealedAs(kid: string): string {
  return `oauth key ${kid}`
}

const AGE_MAX_MS = 5_000
/** Limits how often tokens with unknown kids make us read the database. */
const UNKNOWN_AGE_MS = 1_000
const LEAD_MS = 86_400_000
/** Time for every process to read the new key. */
const LATE_MS = 60_000
/** Counted from when the next key signs. */
const OVER_MS = TOKEN_LIFE_MAX_S * 1000 + 3_600_000
