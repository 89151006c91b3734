import { createHash } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { IdempotencyStore, KeptAnswer } from '../../store/work/idempotency.ts'
import type { HttpContext } from './context.ts'
import { type FieldError, invalid, type ProblemCode, Refusal } from './refusal.ts'

/** A request and its principal. */
interface AskedOnce {
  readonly principal: string
  readonly method: string
  /** Path and query. */
  readonly target: string
  readonly body: unknown
}

export interface GivenAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

/**
 * Runs a request once per `Idempotency-Key`, and replays the first answer to repeats. An answer can hold a
 * secret that is stored nowhere else, such as a new API key. The store therefore seals answers with the
 * `Idempotency-Key`, of which it keeps only a digest.
 */
export class Idempotency {
  readonly #store: IdempotencyStore
  readonly #nowMs: () => number
  /** The number of finished requests whose outcome still has to be stored. */
  #late = 0

  constructor({ store, nowMs }: Pick<HttpContext, 'store' | 'nowMs'>) {
    this.#store = store.idempotency
    this.#nowMs = nowMs
  }

  /**
   * Throws a Refusal, which may be a replay of the first one. Internal failures are forgotten, not replayed.
   */
  async once(key: string, asked: AskedOnce, run: () => Promise<GivenAnswer>): Promise<GivenAnswer> {
    if (!KEY.test(key))
      throw invalid([{ pointer: '/Idempotency-Key', detail: 'must have 1 to 255 visible ASCII characters' }])
    const { principal, method, target, body } = asked
    // The digest includes the key: without it, the digest would be a quick way to guess a password in a body.
    const request = digest(JSON.stringify([key, method, target, body ?? null]))
    const beginning = await this.#store.begin(principal, key, request, this.#nowMs())
    switch (beginning.kind) {
      case 'running':
        throw new Refusal('idempotency_in_progress', 'try again when it has finished', {
          headers: { 'Retry-After': '1' },
        })
      case 'conflict':
        throw new Refusal('idempotency_conflict', 'this key was already used for another request')
      case 'done':
        return replayed(beginning.answer)
      case 'new': {
        const { begun } = beginning
        const outcome = await run().catch(async (error: unknown) => {
          if (error instanceof Refusal && error.status < 500) return error
          await this.#end(() => this.#store.abandon(begun)).catch(() => undefined)
          throw error
        })
        await this.#end(() => this.#store.finish(begun, kept(outcome)))
        if (outcome instanceof Refusal) throw outcome
        return outcome
      }
    }
  }

  /**
   * Retries a failed write in the background. Otherwise a repeat would be told for minutes that the first
   * request is still running.
   */
  async #end(write: () => Promise<unknown>): Promise<void> {
    try {
      await write()
    } catch (error) {
      if (this.#late < LATE_MAX) void this.#endLater(write)
      throw error
    }
  }

  async #endLater(write: () => Promise<unknown>): Promise<void> {
    this.#late++
    for (let time = 0; time < LATE_TIMES_MAX; time++) {
      await wait(LATE_MS, undefined, { ref: false })
      const isWritten = await write().then(
        () => true,
        () => false,
      )
      if (isWritten) break
    }
    this.#late--
  }
}

/** A refusal is stored as its constructor arguments. */
interface KeptRefusal {
  readonly code: ProblemCode
  readonly detail: string
  readonly errors: readonly FieldError[]
}

function kept(outcome: GivenAnswer | Refusal): KeptAnswer {
  const { status, headers } = outcome
  const refused = (refusal: Refusal): KeptRefusal => {
    return { code: refusal.code, detail: refusal.message, errors: refusal.errors }
  }
  const content = outcome instanceof Refusal ? refused(outcome) : outcome.body
  return { status, headers, body: JSON.stringify(content) }
}

function replayed({ status, headers: first, body }: KeptAnswer): GivenAnswer {
  const headers = { ...first, 'Idempotency-Replayed': 'true' }
  const content: unknown = JSON.parse(body ?? 'null')
  if (status < 400) return { status, headers, body: content }
  const { code, detail, errors } = content as KeptRefusal
  throw new Refusal(code, detail, { headers, errors })
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

const LATE_MS = 500
/** After 5 minutes the store treats the request as abandoned. */
const LATE_TIMES_MAX = 600
const LATE_MAX = 1_000
const KEY = /^[\x21-\x7e]{1,255}$/
