import { type Kysely, sql } from 'kysely'
import type { Queries } from '../engine/database.ts'
import { storedObject } from '../engine/stored.ts'
import type { Tables } from '../engine/tables.ts'
import { has } from './record-erasure.ts'

/** Where records of an account are deleted whole, and the column with its id. */
const OWNED = {
  users: 'id',
  user_recovery_codes: 'user_id',
  passkeys: 'user_id',
  oauth_records: 'person_id',
  gnap_grants: 'decided_by',
  gnap_tokens: 'approved_by',
  task_chunks: 'task_id',
  tasks: 'principal',
  idempotency: 'principal',
} as const
type OwnedTable = keyof typeof OWNED

/** The account whose data is erased, which may be deleted already. */
export interface ErasedAccount {
  /** `null`: there was no account. */
  readonly id: string | null
  /** `null`: nothing says it any more. */
  readonly email: string | null
}

/** Erases what is kept of an account, in the transaction of the caller. */
export class AccountErasure {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** The ids of accounts that had this e-mail address, as the audit log knows. */
  async idsOf(email: string): Promise<readonly string[]> {
    const rows = await this.#db
      .selectFrom('audit')
      .select(['subject', 'detail'])
      .where('subject', 'like', 'usr_%')
      .where(has(this.#db, 'detail', JSON.stringify(email)))
      .execute()
    const found = rows.filter(({ detail }) => storedObject(detail)['email'] === email)
    return [...new Set(found.flatMap(({ subject }) => subject ?? []))]
  }

  /** How many rows of each table are only about the account. */
  async count(id: string, queries: Queries = this.#db): Promise<ReadonlyMap<OwnedTable, number>> {
    const counts = new Map<OwnedTable, number>()
    for (const table of Object.keys(OWNED) as OwnedTable[]) {
      const { rows } = await sql<{ count: number }>`
        select count(*) as count from ${sql.table(table)} where ${isOwned(table, id)}`.execute(queries)
      counts.set(table, Number(rows[0]!.count))
    }
    return counts
  }

  /** Deletes these rows. Sessions and consents are ended before, because programs rely on them. */
  async remove(id: string, queries: Queries): Promise<void> {
    for (const table of (Object.keys(OWNED) as OwnedTable[]).toReversed())
      await sql`delete from ${sql.table(table)} where ${isOwned(table, id)}`.execute(queries)
  }

  /** Blanks what the audit log tells of the person. Who changed what stays, by the id. */
  async *audit({ id, email }: ErasedAccount, isDry: boolean): AsyncGenerator<number> {
    for (let after: string | null = ''; after !== null; ) {
      const rows: readonly AuditRow[] = await this.#db
        .selectFrom('audit')
        .select(['id', 'principal', 'subject', 'address', 'detail'])
        .where('id', '>', after)
        .where(({ eb, or }) =>
          or([
            ...(id === null ? [] : [eb('principal', '=', id), eb('subject', '=', id)]),
            ...(email === null ? [] : [has(this.#db, 'detail', JSON.stringify(email))]),
          ]),
        )
        .orderBy('id')
        .limit(ROWS)
        .execute()
      let count = 0
      for (const row of rows) {
        const isOwn = id !== null && row.subject === id
        const address = row.principal === id ? null : row.address
        const detail = JSON.stringify(
          Object.fromEntries(
            Object.entries(storedObject(row.detail)).map(([name, value]) => {
              const isBlanked = value === email || (isOwn && OF_PERSON.has(name))
              return [name, isBlanked && typeof value === 'string' ? ERASED : value]
            }),
          ),
        )
        if (address === row.address && detail === row.detail) continue
        count++
        if (!isDry)
          await this.#db.updateTable('audit').set({ address, detail }).where('id', '=', row.id).execute()
      }
      yield count
      after = rows.length < ROWS ? null : rows.at(-1)!.id
    }
  }
}

function isOwned(table: OwnedTable, id: string) {
  const column = sql.ref(OWNED[table])
  return table === 'task_chunks'
    ? sql<boolean>`${column} in (select id from tasks where principal = ${id})`
    : sql<boolean>`${column} = ${id}`
}

interface AuditRow {
  readonly id: string
  readonly principal: string
  readonly subject: string | null
  readonly address: string | null
  readonly detail: string
}

/** Details about an account that name the person, or a device. */
const OF_PERSON: ReadonlySet<string> = new Set(['email', 'subject', 'name', 'passkey'])
export const ERASED = '[erased]'
const ROWS = 500
