import { type Kysely, type Selectable, sql } from 'kysely'
import { type Ja4Type, partsOfFingerprint } from '../../classify/known/fingerprint-form.ts'
import { confidenceOf } from '../../classify/verdict/confidence.ts'
import { isDecidable } from '../../classify/known/signature.ts'
import { namesOf, type Software } from '../../classify/known/software.ts'
import { allNames, spellings, storable } from '../../classify/known/software-names.ts'
import { softwareDocument } from '../../classify/known/software-document.ts'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import type {
  SignatureSource,
  SignatureStatus,
  SignatureTable,
  SoftwareTable,
} from '../engine/tables/catalogue.ts'
import type { Tables } from '../engine/tables.ts'

export type SoftwareRow = Selectable<SoftwareTable>
export type SignatureRow = Selectable<SignatureTable>

/** A signature from the API or from live traffic. */
export interface NewSignature {
  readonly type: Ja4Type
  readonly value: string
  /** Empty: no owner is known. */
  readonly softwareId: string
  readonly status: SignatureStatus
  readonly source: Exclude<SignatureSource, 'builtin'>
  readonly provenance: string
  readonly firstSeenMs: number
  readonly observations: number
}

/** The primary key of a signature. */
export type CatalogueKey = Pick<NewSignature, 'type' | 'value' | 'softwareId'>

/**
 * Lookups by name and single changes. Lists are in catalogue-lists.ts, merging files in catalogue-merge.ts.
 */
export class CatalogueStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  get kind(): DatabaseKind {
    return this.#kind
  }

  /** Looks up the id, then an exact name or alias, then other spellings. */
  async softwareNamed(name: string, queries: Queries = this.#db): Promise<SoftwareRow | null> {
    if (name.includes('\0')) return null // PostgreSQL text cannot contain it
    for (const each of spellings(name)) {
      const found = await queries
        .selectFrom('software_names')
        .innerJoin('software', 'software.id', 'software_names.software_id')
        .selectAll('software')
        .where('software_names.name', '=', each)
        .executeTakeFirst()
      if (found !== undefined) return found
    }
    return null
  }

  /** Adds software that is in no file. `false`: its id is taken. */
  async addSoftware(software: Software, firstSeenMs: number, queries: Queries): Promise<boolean> {
    const row = softwareRow(software, 'api', firstSeenMs)
    const { numInsertedOrUpdatedRows } = await queries
      .insertInto('software')
      .values(row)
      .onConflict((conflict) => conflict.column('id').doNothing())
      .executeTakeFirst()
    if (numInsertedOrUpdatedRows !== 1n) return false
    const names = allNames(software).map((name) => ({ name, software_id: software.id }))
    await queries
      .insertInto('software_names')
      .values(names)
      .onConflict((conflict) => conflict.column('name').doNothing())
      .execute()
    return true
  }

  /**
   * Adds a signature. Returns `false` if its owner has one already, which stays unchanged. Recalculates the
   * confidence of all owners of the fingerprint.
   */
  async addSignature(signature: NewSignature, queries: Queries): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await queries
      .insertInto('signatures')
      .values(signatureRow(signature))
      .onConflict((conflict) => conflict.columns(['type', 'value', 'software_id']).doNothing())
      .executeTakeFirst()
    if (numInsertedOrUpdatedRows !== 1n) return false
    await weighAnew(signature.type, signature.value, queries)
    return true
  }

  /**
   * Changes the status of a signature from the API or live traffic. `false`: it does not exist or has this
   * status. A retired signature is deleted. If a file contains it, the next merge restores it.
   */
  async setStatus(key: CatalogueKey, status: SignatureStatus, queries: Queries): Promise<boolean> {
    const isChanged =
      status === 'retired' ? await removed(key, queries) : await restated(key, status, queries)
    if (isChanged) await weighAnew(key.type, key.value, queries)
    return isChanged
  }

  /** These are few compared to the built-in signatures, and have an index of their own. */
  get #accepted() {
    return this.#db
      .selectFrom('signatures')
      .where(sql<boolean>`source <> 'builtin'`)
      .where('source', '=', 'submitted')
      .where('status', '=', 'active')
      .where('software_id', '<>', '')
  }

  /** Active signatures that the API has accepted, ordered by key, after `last`. */
  accepted(last: CatalogueKey | null, limit: number): Promise<SignatureRow[]> {
    return this.#accepted
      .selectAll()
      .where(
        sql<boolean>`(type, value, software_id) > (${last?.type ?? ''}, ${last?.value ?? ''}, ${last?.softwareId ?? ''})`,
      )
      .orderBy('type')
      .orderBy('value')
      .orderBy('software_id')
      .limit(limit)
      .execute()
  }

  /** Changes whenever the accepted signatures change. Their software is created and deleted with them. */
  async acceptedMark(): Promise<string> {
    const { mark } = await this.#accepted
      // As text, because a number would lose the last digits of the sum.
      .select(sql<string>`count(*) || ' ' || coalesce(sum(first_seen_ms), 0)`.as('mark'))
      .executeTakeFirstOrThrow()
    return mark
  }

  /** Software that is in no file, ordered by id, after `last`. */
  madeHere(last: string, limit: number): Promise<SoftwareRow[]> {
    return this.#db
      .selectFrom('software')
      .selectAll()
      .where('origin', '=', 'api')
      .where('id', '>', last)
      .orderBy('id')
      .limit(limit)
      .execute()
  }

  /** All signatures with exactly this fingerprint. */
  signaturesOf(type: Ja4Type, value: string, queries: Queries = this.#db): Promise<SignatureRow[]> {
    return queries
      .selectFrom('signatures')
      .selectAll()
      .where('type', '=', type)
      .where('value', '=', value)
      .orderBy('software_id')
      .execute()
  }
}

async function removed({ type, value, softwareId }: CatalogueKey, queries: Queries): Promise<boolean> {
  const { numDeletedRows } = await queries
    .deleteFrom('signatures')
    .where('type', '=', type)
    .where('value', '=', value)
    .where('software_id', '=', softwareId)
    .where('source', '<>', 'builtin')
    .executeTakeFirst()
  if (numDeletedRows !== 1n) return false
  await queries.updateTable('catalogue_state').set({ hash: '' }).execute()
  return true
}

async function restated(
  { type, value, softwareId }: CatalogueKey,
  status: SignatureStatus,
  queries: Queries,
): Promise<boolean> {
  const { numUpdatedRows } = await queries
    .updateTable('signatures')
    .set({ status })
    .where('type', '=', type)
    .where('value', '=', value)
    .where('software_id', '=', softwareId)
    .where('source', '<>', 'builtin')
    .where('status', '<>', status)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Recalculates the confidence of all owners of a fingerprint after one was added or removed. */
export async function weighAnew(type: Ja4Type, value: string, queries: Queries): Promise<void> {
  // The same formula as confidenceOf.
  await sql`
    update signatures set confidence = case when software_id = '' then 0 else (observations + 1.0) / (
      select sum(others.observations) + count(*) + 1.0 from signatures as others
      where others.type = ${type} and others.value = ${value} and others.status = 'active'
    ) end
    where type = ${type} and value = ${value} and status = 'active'`.execute(queries)
}

export function softwareRow(
  software: Software,
  origin: SoftwareTable['origin'],
  firstSeenMs: number,
): SoftwareRow {
  const { id, kind, category, vendor, description } = software
  const search = [...namesOf(software), vendor, description].filter((each) => each !== null)
  return {
    id,
    kind,
    category,
    origin,
    first_seen_ms: firstSeenMs,
    name: storable(software.name),
    description: description === null ? null : storable(description),
    search: storable(search.join('\n').toLowerCase()),
    document: JSON.stringify(softwareDocument(software)),
  }
}

export function signatureRow(signature: NewSignature): SignatureRow {
  const { type, value, softwareId, status, source, provenance, observations } = signature
  const [, part_b = '', part_c = ''] = partsOfFingerprint(type, value)
  return {
    type,
    value,
    software_id: softwareId,
    part_b,
    part_c,
    status,
    source,
    provenance,
    observations,
    first_seen_ms: signature.firstSeenMs,
    confidence: softwareId === '' ? 0 : confidenceOf(observations, observations, 1),
    is_decisive: source === 'submitted' && isDecidable(type) ? 1 : 0,
  }
}
