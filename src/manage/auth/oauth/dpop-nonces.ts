import { hkdfSync, randomBytes } from 'node:crypto'
import { digestOf } from '../../../store/engine/sealed.ts'
import type { RecordKeeping } from './records.ts'

/**
 * What proofs have to hold so that none could have been made long before (RFC 9449 §8 and §9): made of the time and of a
 * secret in the database, so that what one process has given out every other takes, also after a restart. The API and the
 * authorization server are one origin, for which clients keep one nonce: so they are reckoned as oidc-provider does.
 */
export class DpopNonces {
  readonly #keeping: Pick<RecordKeeping, 'store' | 'sealer' | 'nowMs'>
  #secret: Promise<Buffer> | null = null
  #known: { readonly step: number; readonly nonces: readonly string[] } | null = null

  constructor(keeping: Pick<RecordKeeping, 'store' | 'sealer' | 'nowMs'>) {
    this.#keeping = keeping
  }

  /** For oidc-provider. */
  secret(): Promise<Buffer> {
    this.#secret ??= this.#read().catch((error) => {
      this.#secret = null // the database may be back by the next time
      throw error
    })
    return this.#secret
  }

  /** For the next proof. */
  async next(): Promise<string> {
    return (await this.#current())[NEXT]!
  }

  async isGood(nonce: unknown): Promise<boolean> {
    // It is no secret: whoever asks is told.
    return typeof nonce === 'string' && (await this.#current()).includes(nonce)
  }

  /** The database has another content. */
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
      // Of two processes at once one makes it.
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
/** A minute ahead, so that it is good for three at least. */
const NEXT = 3
/** The kind of the record that holds the secret, and what that is sealed as: see Sealer. */
export const NONCE_KIND = 'NonceSecret'
export const NONCE_SECRET = 'oauth dpop nonces'
const RECORD = {
  ...{ id: digestOf('dpop nonces', 'secret'), kind: NONCE_KIND, grantId: null, uid: null },
  ...{ userCode: null, clientId: null, personId: null, expiresAtMs: Number.MAX_SAFE_INTEGER },
}
