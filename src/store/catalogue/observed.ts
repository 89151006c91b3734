import { type Kysely, sql } from 'kysely'
import { parts } from '../engine/bulk.ts'
import { type SignatureRow, signatureRow } from './catalogue.ts'
import type { Queries } from '../engine/database.ts'
import type { FingerprintKind, UnnamedFingerprint } from './fingerprints-seen.ts'
import type { Tables } from '../engine/tables.ts'

/** Fingerprints that were seen often enough to become signatures, without an owner. */
export class ObservedStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** Resolves to the new ones. If there are more than `rowsMax`, the least seen are deleted. */
  async add(
    fingerprints: readonly UnnamedFingerprint[],
    rowsMax: number,
    queries: Queries,
  ): Promise<readonly UnnamedFingerprint[]> {
    const known = await keysIn(fingerprints, queries)
    const added = new Set<string>()
    for (const part of parts(fingerprints.filter((each) => !known.has(keyOf(each))))) {
      const rows = await queries
        .insertInto('signatures')
        .values(part.map(rowOf))
        .onConflict((conflict) => conflict.doNothing())
        .returning(['type', 'value'])
        .execute()
      for (const row of rows) added.add(keyOf(row))
    }
    const fresh = fingerprints.filter((each) => added.has(keyOf(each)))
    if (fresh.length === 0 || !(await makeRoom(rowsMax, queries))) return fresh
    const left = await keysIn(fresh, queries)
    return fresh.filter((each) => left.has(keyOf(each)))
  }

  /** Deletes those that have an owner by now. */
  async forgetNamed(): Promise<void> {
    await this.#db
      .deleteFrom('signatures')
      .where('software_id', '=', '')
      .where('source', '=', 'observed')
      .where(({ exists, selectFrom }) =>
        exists(
          selectFrom('signatures as named')
            .select('named.type')
            .whereRef('named.type', '=', 'signatures.type')
            .whereRef('named.value', '=', 'signatures.value')
            .where('named.software_id', '<>', '')
            .where('named.status', '<>', 'retired'),
        ),
      )
      .execute()
  }

  async rows(): Promise<number> {
    return countIn(this.#db)
  }
}

function rowOf({ type, value, firstSeenMs, requests }: UnnamedFingerprint): SignatureRow {
  return signatureRow({
    type,
    value,
    softwareId: '',
    status: 'unknown',
    source: 'observed',
    provenance: 'live traffic',
    firstSeenMs,
    observations: requests,
  })
}

/** The fingerprints that are signatures already, with or without an owner. */
async function keysIn(
  fingerprints: readonly UnnamedFingerprint[],
  queries: Queries,
): Promise<ReadonlySet<string>> {
  const keys = new Set<string>()
  for (const type of new Set(fingerprints.map((each) => each.type))) {
    const values = fingerprints.filter((each) => each.type === type).map(({ value }) => value)
    for (const part of parts(values)) {
      const rows = await queries
        .selectFrom('signatures')
        .select(['type', 'value'])
        .where('type', '=', type)
        .where('value', 'in', part)
        .execute()
      for (const row of rows) keys.add(keyOf(row))
    }
  }
  return keys
}

/** `false`: nothing had to be deleted. */
async function makeRoom(rowsMax: number, queries: Queries): Promise<boolean> {
  const surplus = (await countIn(queries)) - rowsMax
  if (surplus <= 0) return false
  await sql`
    delete from signatures where software_id = '' and (type, value) in (
      select observed.type, observed.value from signatures as observed
      left join fingerprints_seen as seen on seen.type = observed.type and seen.value = observed.value
      where observed.software_id = '' and observed.source = 'observed'
      order by coalesce(seen.rank, 0), observed.type, observed.value limit ${surplus})`.execute(queries)
  return true
}

async function countIn(queries: Queries): Promise<number> {
  const { rows } = await queries
    .selectFrom('signatures')
    .select(({ fn }) => fn.countAll<number>().as('rows'))
    .where('software_id', '=', '')
    .where('source', '=', 'observed')
    .executeTakeFirstOrThrow()
  return Number(rows)
}

function keyOf({ type, value }: { readonly type: FingerprintKind; readonly value: string }): string {
  return `${type} ${value}`
}
