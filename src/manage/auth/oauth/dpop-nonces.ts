import { hkdfSync, randomBytes } from 'node:crypto'
import { digestOf } from '../../../store/engine/sealed.ts'
import type { RecordKeeping } from './records.ts'

/**
 * Nonces prove that a DPoP proof is recent (RFC 9449 §8 and §9). They are derived from the time and a secret
 * in the database, so every process accepts the nonces of every other, also after a restart. Clients keep one
 * nonce per origin, and the API and the authorization server share one: this uses the derivation of
 * oidc-provider.
 */
export class DpopNonces {
  readonly #keeping: Pick<RecordKeeping, 'store' | 'sealer' | 'nowMs'>
  #secret: Promise<Buffer> | null = null
  #known: { readonly step: number; readonly nonces: readonly string[] } | null = null

  constructor(keeping: Pick<RecordKeeping, 'store' | 'sealer' | 'nowMs'>) {
    this.#keeping = keeping
  }

  /** The secret for oidc-provider. */
  secret(): Promise<Buffer> {
    this.#secret ??= this.#read().catch((error) => {
      this.#secret = null // so that the next call tries again
      throw error
    })
    return this.#secret
  }

  /** The nonce for the client's next proof. */
  async next(): Promise<string> {
    return (await this.#current())[NEXT]!
  }

  async isGood(nonce: unknown): Promise<boolean> {
    // A nonce is public, so the comparison need not be constant-time.
    return typeof nonce === 'string' && (await this.#current()).includes(nonce)
  }

  /** Clears the cache after a restore has replaced the database. */
  forget(): void {
    this.#secret = null
    this.#known = null
  }

  async #current(): Promise<readonly string[]> {
    const step = Math.floor(this.#keeping.nowMs() / STEP_MS)
    if (this.#known?.step === step) return this.#known.nonces
    const secret = await this.secret()
    const nonces = [-2, -1, 0, 1, 2].map((offset) => nonceOf(secret, step + offset))
    this.#known = { step, nonces }
    return nonces
  }

  async #read(): Promise<Buffer> {
    const { store, sealer, nowMs } = this.#keeping
    const made = async () => {
      const sealed = await sealer.seal(randomBytes(SECRET_BYTES).toString('base64url'), NONCE_SECRET)
      // If two processes do this at once, one of them stores its secret and both read that.
      await store.oauthRecords.putOnce({ ...RECORD, sealed }, nowMs())
      return (await store.oauthRecords.byId(RECORD.id))!
    }
    const { sealed } = (await store.oauthRecords.byId(RECORD.id)) ?? (await made())
    return Buffer.from((await sealer.open(sealed, NONCE_SECRET)).reveal(), 'base64url')
  }
}

function nonceOf(secret: Buffer, step: number): string {
  const salt = Buffer.alloc(8)
  salt.writeBigUInt64BE(BigInt(step))
  return Buffer.from(hkdfSync('sha256', secret, salt, 'DPoP', SECRET_BYTES)).toString('base64url')
}

const SECRET_BYTES = 32
const STEP_MS = 60_000
/** The index of the nonce one minute ahead, which stays valid for at least three minutes. */
const NEXT = 3
/** The kind of the record that holds the secret, and the purpose it is sealed for: see Sealer. */
export const NONCE_KIND = 'NonceSecret'
export const NONCE_SECRET = 'oauth dpop nonces'
const RECORD = {
  id: digestOf('dpop nonces', 'secret'),
  kind: NONCE_KIND,
  grantId: null,
  uid: null,
  userCode: null,
  clientId: null,
  personId: null,
  expiresAtMs: Number.MAX_SAFE_INTEGER,
}
