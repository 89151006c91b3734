import type { Kysely } from 'kysely'
import type { Queries } from '../engine/database.ts'
import { digestOf, sealed, unsealed } from '../engine/sealed.ts'
import type { IdempotencyTable } from '../engine/tables/idempotency.ts'
import type { Tables } from '../engine/tables.ts'

/** What was answered the first time. */
export interface KeptAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** As it was sent; `null`: there was none. */
  readonly body: string | null
}

/** A request that this process is doing. */
export interface Begun {
  readonly principal: string
  readonly key: string
  readonly beganAtMs: number
}

export type Beginning =
  /** It is the caller's to do, and then to `finish` or to `abandon`. */
  | { readonly kind: 'new'; readonly begun: Begun }
  /** Somebody is at it. */
  | { readonly kind: 'running' }
  | { readonly kind: 'done'; readonly answer: KeptAnswer }
  /** The key was used for another request. */
  | { readonly kind: 'conflict' }

/**
 * Which requests have been made before: of two that come at the same time, to whatever processes, one is done. Some
 * answers hold what is shown once, like a new API key, so they can be read only with the idempotency key they were
 * given for, of which there is a digest here.
 */
export class IdempotencyStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  async begin(principal: string, key: string, requestHash: string, nowMs: number): Promise<Beginning> {
    for (;;) {
      const begun: Begun = { principal, key, beganAtMs: nowMs }
      if (await this.#inserted(begun, requestHash)) return { kind: 'new', begun }
      const row = await this.#at(begun)
      // It was abandoned or forgotten in this very moment.
      if (row === undefined) continue
      if (isFree(row, nowMs)) {
        if (await this.#takenOver(row, begun, requestHash)) return { kind: 'new', begun }
        continue
      }
      if (row.request_hash !== requestHash) return { kind: 'conflict' }
      return row.status === null
        ? { kind: 'running' }
        : { kind: 'done', answer: answerOf(row, row.status, key) }
    }
  }

  /** `false`: it took so long that somebody else has it. Best in the transaction of what was done. */
  async finish(begun: Begun, answer: KeptAnswer, queries: Queries = this.#db): Promise<boolean> {
    const { principal, key } = begun
    const { status, headers, body } = answer
    const { numUpdatedRows } = await queries
      .updateTable('idempotency')
      .set({
        status,
        headers: sealed(JSON.stringify(headers), key),
        body: body === null ? null : sealed(body, key),
      })
      .where('principal', '=', principal)
      .where('key_digest', '=', digestOf(principal, key))
      .where('created_at_ms', '=', begun.beganAtMs)
      .where('status', 'is', null)
      .executeTakeFirst()
    return numUpdatedRows > 0n
  }

  /** Nothing came of it: who asks again is the first. */
  async abandon({ principal, key, beganAtMs }: Begun): Promise<void> {
    await this.#db
      .deleteFrom('idempotency')
      .where('principal', '=', principal)
      .where('key_digest', '=', digestOf(principal, key))
      .where('created_at_ms', '=', beganAtMs)
      .where('status', 'is', null)
      .execute()
  }

  /** Forgets so many at most of what has expired; resolves to how many they were. */
  async forget(nowMs: number, rowsMax: number): Promise<number> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('idempotency')
      .where(({ eb, refTuple, selectFrom }) =>
        eb(
          refTuple('principal', 'key_digest'),
          'in',
          selectFrom('idempotency')
            .select(['principal', 'key_digest'])
            .where('expires_at_ms', '<=', nowMs)
            .limit(rowsMax)
            .$asTuple('principal', 'key_digest'),
        ),
      )
      // Meanwhile it may have been begun anew.
      .where('expires_at_ms', '<=', nowMs)
      .executeTakeFirst()
    return Number(numDeletedRows)
  }

  async #inserted({ principal, key, beganAtMs }: Begun, requestHash: string): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await this.#db
      .insertInto('idempotency')
      .values({ principal, key_digest: digestOf(principal, key), ...fresh(requestHash, beganAtMs) })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst()
    return (numInsertedOrUpdatedRows ?? 0n) > 0n
  }

  #at({ principal, key }: Begun): Promise<IdempotencyTable | undefined> {
    return this.#db
      .selectFrom('idempotency')
      .selectAll()
      .where('principal', '=', principal)
      .where('key_digest', '=', digestOf(principal, key))
      .executeTakeFirst()
  }

  /** Of those who see that it is free one gets it. */
  async #takenOver(row: IdempotencyTable, { beganAtMs }: Begun, requestHash: string): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable('idempotency')
      .set(fresh(requestHash, beganAtMs))
      .where('principal', '=', row.principal)
      .where('key_digest', '=', row.key_digest)
      .where('created_at_ms', '=', row.created_at_ms)
      .where('status', row.status === null ? 'is' : '=', row.status)
      .executeTakeFirst()
    return numUpdatedRows > 0n
  }
}

function fresh(requestHash: string, nowMs: number) {
  const times = { created_at_ms: nowMs, expires_at_ms: nowMs + KEPT_MS }
  return { request_hash: requestHash, status: null, headers: null, body: null, ...times }
}

/** It has expired, or who was at it is not any more: the process was killed. */
function isFree({ status, created_at_ms, expires_at_ms }: IdempotencyTable, nowMs: number): boolean {
  return expires_at_ms <= nowMs || (status === null && created_at_ms + RUNNING_MS <= nowMs)
}

function answerOf({ headers, body }: IdempotencyTable, status: number, key: string): KeptAnswer {
  return {
    status,
    headers: JSON.parse(unsealed(headers ?? '', key)) as Record<string, string>,
    body: body === null ? null : unsealed(body, key),
  }
}

/** As long as clients try again. */
const KEPT_MS = 86_400_000
/** No request takes so long. */
const RUNNING_MS = 300_000
