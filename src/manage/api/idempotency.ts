import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import type { IdempotencyStore, KeptAnswer } from '../../store/idempotency.ts'
import type { Management } from '../management.ts'
import { type FieldError, invalid, type ProblemCode, Refusal } from '../refusal.ts'

/** What is asked, and by whom. */
export interface AskedOnce {
  readonly principal: string
  /** The whole `Authorization` header. */
  readonly credential: string
  readonly method: string
  /** The path and the query. */
  readonly target: string
  readonly body: unknown
}

export interface GivenAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

/**
 * Does once what is asked for several times under one `Idempotency-Key`, and gives the first answer again. Answers hold
 * secrets that are kept nowhere else, a new key for one: they are stored encrypted, with a key made of the credential and
 * the `Idempotency-Key`, neither of which is stored. So only the same credential gets the answer again; another one of
 * the same principal is told of the conflict, and nothing is done twice.
 */
export class Idempotency {
  readonly #store: IdempotencyStore
  readonly #management: Management

  constructor(management: Management) {
    this.#store = management.store.idempotency
    this.#management = management
  }

  /** Throws a Refusal, be it the first one again. A failure that is not the caller's is forgotten. */
  async once(key: string, asked: AskedOnce, run: () => Promise<GivenAnswer>): Promise<GivenAnswer> {
    if (!KEY.test(key))
      throw invalid([{ pointer: '/Idempotency-Key', detail: 'takes 1 to 255 visible ASCII characters' }])
    const { principal, credential, method, target, body } = asked
    const request = digest(JSON.stringify([method, target, body ?? null]))
    const safe = new Safe(credential, key)
    const beginning = await this.#store.begin(principal, digest(key), request, this.#management.nowMs())
    switch (beginning.kind) {
      case 'running':
        throw new Refusal('idempotency_in_progress', 'ask again when it is done', {
          headers: { 'Retry-After': '1' },
        })
      case 'conflict':
        throw new Refusal('idempotency_conflict', 'this key came with another request before')
      case 'done':
        return replayed(beginning.answer, safe)
      case 'new': {
        const { begun } = beginning
        const outcome = await run().catch(async (error: unknown) => {
          if (error instanceof Refusal && error.status < 500) return error
          await this.#store.abandon(begun)
          throw error
        })
        await this.#store.finish(begun, kept(outcome, safe))
        if (outcome instanceof Refusal) throw outcome
        return outcome
      }
    }
  }
}

/** A refusal is kept as what it was made of. */
interface KeptRefusal {
  readonly code: ProblemCode
  readonly detail: string
  readonly errors: readonly FieldError[]
}

function kept(outcome: GivenAnswer | Refusal, safe: Safe): KeptAnswer {
  const { status, headers } = outcome
  const refused = (refusal: Refusal): KeptRefusal => {
    return { code: refusal.code, detail: refusal.message, errors: refusal.errors }
  }
  const content = outcome instanceof Refusal ? refused(outcome) : outcome.body
  return { status, headers, body: safe.sealed(JSON.stringify(content)) }
}

function replayed({ status, headers: first, body }: KeptAnswer, safe: Safe): GivenAnswer {
  const text = body === null ? null : safe.opened(body)
  if (text === null)
    throw new Refusal('idempotency_conflict', 'this key was used with another token, who has had the answer')
  const headers = { ...first, 'Idempotency-Replayed': 'true' }
  const content: unknown = JSON.parse(text)
  if (status < 400) return { status, headers, body: content }
  const { code, detail, errors } = content as KeptRefusal
  throw new Refusal(code, detail, { headers, errors })
}

/** What can be opened only with the same credential and the same `Idempotency-Key`. */
class Safe {
  readonly #key: Uint8Array

  constructor(credential: string, key: string) {
    this.#key = new Uint8Array(hkdfSync('sha256', credential, '', `gatehouse idempotency ${key}`, 32))
  }

  sealed(text: string): string {
    const iv = randomBytes(IV_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#key, iv)
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url')
  }

  /** `null`: it is somebody else's. */
  opened(text: string): string | null {
    const bytes = Buffer.from(text, 'base64url')
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, IV_BYTES), {
      authTagLength: TAG_BYTES,
    })
    try {
      decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
      const opened = decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES))
      return Buffer.concat([opened, decipher.final()]).toString('utf8')
    } catch {
      return null
    }
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

const KEY = /^[\x21-\x7e]{1,255}$/
const IV_BYTES = 12
const TAG_BYTES = 16
