import type { Kysely, Selectable } from 'kysely'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import { lockUntilCommit } from '../engine/locks.ts'
import { type Order, type Part, type PartOf, partOf } from '../engine/page.ts'
import { storedJson, storedObject, storedTexts } from '../engine/stored.ts'
import type { GnapGrantTable } from '../engine/tables/gnap.ts'
import type { Tables } from '../engine/tables.ts'

/** A grant request of an unknown key, and its outcome. */
export interface GnapGrantRecord {
  readonly id: string
  readonly state: GrantState
  readonly thumbprint: string
  readonly jwk: Readonly<Record<string, unknown>>
  readonly display: { readonly name: string | null; readonly uri: string | null }
  readonly wanted: WantedTokens
  readonly finish: GrantFinish | null
  /** The requested scopes, then the approved ones. */
  readonly scopes: readonly string[]
  /** `null`: the browser was not sent back yet. */
  readonly referenceHash: string | null
  readonly nextAtMs: number
  readonly decided: Decided | null
  readonly createdAtMs: number
  readonly expiresAtMs: number
}

/** The principal that decided and, if it signs in, when it signed in. */
export interface Decided {
  /** The id of a principal. */
  readonly by: string
  readonly atMs: number
}

/** `finished`: the client has received its tokens, or has withdrawn. */
export type GrantState = (typeof GRANT_STATES)[number]

export interface WantedTokens {
  /** The client requested a list of tokens. */
  readonly isList: boolean
  readonly tokens: readonly WantedToken[]
}

export interface WantedToken {
  readonly label: string | null
  readonly actions: readonly string[]
  readonly isBearer: boolean
}

/** Where the browser goes after the decision. */
export interface GrantFinish {
  readonly uri: string
  readonly nonce: string
  readonly hashMethod: string
  readonly serverNonce: string
}

export type NewGrant = Omit<GnapGrantRecord, 'state' | 'referenceHash' | 'decided'> & {
  readonly interactHash: string
  readonly continueHash: string
}

export class GnapGrantStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  /** `false`: the limit is reached. */
  async add(grant: NewGrant, grantsMax: number): Promise<boolean> {
    const { id, thumbprint, finish } = grant
    return this.#db.transaction().execute(async (queries) => {
      // Concurrent additions wait and count this grant.
      await lockUntilCommit(queries, this.#kind, 'gnapGrants')
      const counted = queries.selectFrom('gnap_grants').select(({ fn }) => fn.countAll<number>().as('total'))
      if (Number((await counted.executeTakeFirstOrThrow()).total) >= grantsMax) return false
      await queries
        .insertInto('gnap_grants')
        .values({
          id,
          thumbprint,
          state: 'waiting',
          reference_hash: null,
          decided_by: null,
          decided_at_ms: null,
          jwk: JSON.stringify(grant.jwk),
          display: JSON.stringify(grant.display),
          wanted: JSON.stringify(grant.wanted),
          finish: finish === null ? null : JSON.stringify(finish),
          scopes: JSON.stringify(grant.scopes),
          interact_hash: grant.interactHash,
          continue_hash: grant.continueHash,
          next_at_ms: grant.nextAtMs,
          created_at_ms: grant.createdAtMs,
          expires_at_ms: grant.expiresAtMs,
        })
        .execute()
      return true
    })
  }

  async byId(id: string): Promise<GnapGrantRecord | null> {
    const row = await this.#db.selectFrom('gnap_grants').selectAll().where('id', '=', id).executeTakeFirst()
    return row === undefined ? null : record(row)
  }

  /** The grant whose page this secret opens. */
  async byInteractHash(hash: string): Promise<GnapGrantRecord | null> {
    const found = this.#db.selectFrom('gnap_grants').selectAll().where('interact_hash', '=', hash)
    const row = await found.executeTakeFirst()
    return row === undefined ? null : record(row)
  }

  /** The grant, if the secret may continue it. */
  async continued(id: string, continueHash: string): Promise<GnapGrantRecord | null> {
    const found = this.#db.selectFrom('gnap_grants').selectAll().where('id', '=', id)
    const row = await found.where('continue_hash', '=', continueHash).executeTakeFirst()
    return row === undefined ? null : record(row)
  }

  /** Grants in this state that have not expired, newest first. */
  async list<Asked extends Part>(
    state: GrantState,
    part: Asked,
    nowMs: number,
  ): Promise<PartOf<GnapGrantRecord, Asked>> {
    const all = this.#db.selectFrom('gnap_grants').where('state', '=', state)
    const found = all.where('expires_at_ms', '>', nowMs)
    return partOf(found, found.selectAll(), NEWEST_FIRST, part, record)
  }

  /** `false`: another principal decided first. */
  async decide(
    id: string,
    state: 'approved' | 'denied',
    scopes: readonly string[],
    { by, atMs }: Decided,
    queries: Queries,
  ): Promise<boolean> {
    const { numUpdatedRows } = await queries
      .updateTable('gnap_grants')
      .set({ state, scopes: JSON.stringify(scopes), decided_by: by, decided_at_ms: atMs })
      .where('id', '=', id)
      .where('state', '=', 'waiting')
      .executeTakeFirst()
    return numUpdatedRows > 0n
  }

  /** Stores the reference that the browser returns with. The last one counts. */
  async setReference(id: string, referenceHash: string): Promise<void> {
    await this.#db
      .updateTable('gnap_grants')
      .set({ reference_hash: referenceHash })
      .where('id', '=', id)
      .where('state', 'in', ['approved', 'denied'])
      .execute()
  }

  /** Replaces the used secret with a new one. `false`: it was used before. */
  async renew(id: string, continueHash: string, nextHash: string, nextAtMs: number): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable('gnap_grants')
      .set({ continue_hash: nextHash, next_at_ms: nextAtMs })
      .where('id', '=', id)
      .where('continue_hash', '=', continueHash)
      .where('state', '<>', 'finished')
      .executeTakeFirst()
    return numUpdatedRows > 0n
  }

  /** `false`: the grant was already finished, or the secret was already used. */
  async finish(id: string, continueHash: string, queries: Queries = this.#db): Promise<boolean> {
    const { numUpdatedRows } = await queries
      .updateTable('gnap_grants')
      .set({ state: 'finished' })
      .where('id', '=', id)
      .where('continue_hash', '=', continueHash)
      .where('state', '<>', 'finished')
      .executeTakeFirst()
    return numUpdatedRows > 0n
  }

  /** Deletes expired grants, at most `rowsMax`. Resolves to their number. */
  async forget(nowMs: number, rowsMax: number): Promise<number> {
    const { numDeletedRows } = await this.#db
      .deleteFrom('gnap_grants')
      .where('id', 'in', (some) =>
        some.selectFrom('gnap_grants').select('id').where('expires_at_ms', '<=', nowMs).limit(rowsMax),
      )
      .executeTakeFirst()
    return Number(numDeletedRows)
  }
}

function record(row: Selectable<GnapGrantTable>): GnapGrantRecord {
  return {
    id: row.id,
    state: GRANT_STATES.find((state) => state === row.state) ?? 'finished',
    thumbprint: row.thumbprint,
    jwk: storedObject(row.jwk),
    display: storedJson(row.display) as GnapGrantRecord['display'],
    wanted: storedJson(row.wanted) as WantedTokens,
    finish: row.finish === null ? null : (storedJson(row.finish) as GrantFinish),
    scopes: storedTexts(row.scopes),
    referenceHash: row.reference_hash,
    nextAtMs: row.next_at_ms,
    decided: decidedIn(row.decided_by, row.decided_at_ms),
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
  }
}

/** `null`: undecided, or an earlier version did not store it. */
export function decidedIn(by: string | null, atMs: number | null): Decided | null {
  return by === null || atMs === null ? null : { by, atMs }
}

export const GRANT_STATES = ['waiting', 'approved', 'denied', 'finished'] as const

const NEWEST_FIRST: Order = {
  columns: [
    { name: 'gnap_grants.created_at_ms', kind: 'whole' },
    { name: 'gnap_grants.id', kind: 'text' },
  ],
  isDescending: true,
}
