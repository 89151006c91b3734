import type { Kysely } from 'kysely'
import type { Queries } from '../engine/database.ts'
import { digestOf, sealed, unsealed } from '../engine/sealed.ts'
import type { IdempotencyTable } from '../engine/tables/idempotency.ts'
import type { Tables } from '../engine/tables.ts'

/** The stored response of the first request. */
export interface KeptAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The body as sent; `null`: no body. */
  readonly body: string | null
}

/** A request that this process is running. */
export interface RunningRequest {
  readonly principal: string
  readonly key: string
  readonly beganAtMs: number
}

type Beginning =
  /** The caller must run it, then call `finish` or `abandon`. */
  | { readonly kind: 'new'; readonly begun: RunningRequest }
  /** Another request with this key is still running. */
  | { readonly kind: 'running' }
  | { readonly kind: 'done'; readonly answer: KeptAnswer }
  /** The key was used for a different request. */
  | { readonly kind: 'conflict' }

/**
 * Records requests by idempotency key. Of two concurrent requests to any processes, one runs. Some responses
 * contain secrets that are shown once, like a new API key. Therefore they are sealed with the idempotency
 * key, of which only a digest is stored.
 */
export class IdempotencyStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  async begin(principal: string, key: string, requestHash: string, nowMs: number): Promise<Beginning> {
    for (;;) {
      const begun: RunningRequest = { principal, key, beganAtMs: nowMs }
      if (await this.#inserted(begun, requestHash)) return { kind: 'new', begun }
      const row = await this.#at(begun)
      // The row was deleted between the two queries.
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

  /**
   * `false`: it took so long that another request took over. Call it in the
   * transaction of the request if possible.
   */
  async finish(begun: RunningRequest, answer: KeptAnswer, queries: Queries = this.#db): Promise<boolean> {
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

  /** Discards the record, so that a retry runs as the first request. */
  async abandon({ principal, key, beganAtMs }: RunningRequest): Promise<void> {
    await this.#db
      .deleteFrom('idempotency')
      .where('principal', '=', principal)
      .where('key_digest', '=', digestOf(principal, key))
      .where('created_at_ms', '=', beganAtMs)
      .where('status', 'is', null)
      .execute()
  }

  /** Deletes expired records, at most `rowsMax`. Resolves to their number. */
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
      // It may have been started again meanwhile.
      .where('expires_at_ms', '<=', nowMs)
      .executeTakeFirst()
    return Number(numDeletedRows)
  }

  async #inserted({ principal, key, beganAtMs }: RunningRequest, requestHash: string): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await this.#db
      .insertInto('idempotency')
      .values({ principal, key_digest: digestOf(principal, key), ...fresh(requestHash, beganAtMs) })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst()
    return (numInsertedOrUpdatedRows ?? 0n) > 0n
  }

  #at({ principal, key }: RunningRequest): Promise<IdempotencyTable | undefined> {
    return this.#db
      .selectFrom('idempotency')
      .selectAll()
      .where('principal', '=', principal)
      .where('key_digest', '=', digestOf(principal, key))
      .executeTakeFirst()
  }

  /** If several requests find it free, one takes it over. */
  async #takenOver(
    row: IdempotencyTable,
    { beganAtMs }: RunningRequest,
    requestHash: string,
  ): Promise<boolean> {
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

/** The record has expired, or its process was killed while running. */
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

/** As long as clients retry. */
const KEPT_MS = 86_400_000
/** No request takes this long. */
const RUNNING_MS = 300_000
