import { type Kysely, type Selectable, sql } from 'kysely'
import type { Purpose } from '../../classify/known/software.ts'
import { parts } from '../engine/bulk.ts'
import type { Queries } from '../engine/database.ts'
import { type Order, type Part, type PartOf, partOf } from '../engine/page.ts'
import type { SignatureTable, SoftwareTable } from '../engine/tables/catalogue.ts'
import type { SubmissionStatus, SubmissionTable } from '../engine/tables/submissions.ts'
import type { Tables } from '../engine/tables.ts'

export type { SubmissionStatus }
export type SubmissionType = SubmissionTable['type']

/** A submitted fingerprint and its outcome. */
export interface SubmissionRecord {
  readonly id: string
  readonly createdAtMs: number
  readonly principal: string
  readonly type: SubmissionType
  readonly value: string
  readonly agentName: string | null
  /** The id of its software, if that is known. */
  readonly softwareId: string | null
  readonly category: SubmissionTable['category']
  /** What a new agent is for, as the submitter says. */
  readonly purposes: readonly Purpose[]
  readonly userAgent: string | null
  readonly notes: string | null
  readonly status: SubmissionStatus
  readonly reasons: readonly SubmissionReason[]
  readonly duplicateOf: string | null
  /** Accepting it created its software. */
  readonly madeSoftware: boolean
  readonly decidedAtMs: number | null
  readonly decidedBy: string | null
  readonly rolledBackAtMs: number | null
}

/** A finding about a submission. */
export interface SubmissionReason {
  /** Stable, for programs. */
  readonly code: string
  readonly detail: string
}

interface SubmissionFilter {
  readonly status: SubmissionStatus | null
  readonly type: SubmissionType | null
  /** Matches the fingerprint, the agent's name or its id, ignoring case. */
  readonly text: string | null
}

/** The columns that tell software apart. */
export type NamedSoftware = Pick<SoftwareTable, 'id' | 'name' | 'kind' | 'category'>

/** An active signature with its owner. */
export interface Registered extends NamedSoftware {
  readonly value: string
  readonly source: SignatureTable['source']
  readonly provenance: string
  readonly firstSeenMs: number
  readonly observations: number
  readonly confidence: number
  readonly isDecisive: 0 | 1
}

/** A fingerprint on live traffic. */
export interface FingerprintTraffic {
  readonly value: string
  readonly requests: number
  /** Distinct addresses, estimated. */
  readonly addresses: number
  readonly firstSeenMs: number
  readonly lastSeenMs: number
}

/** The fields that a decision changes. */
export type SubmissionDecision = Pick<
  SubmissionRecord,
  'status' | 'softwareId' | 'madeSoftware' | 'decidedAtMs' | 'decidedBy' | 'rolledBackAtMs'
>

export class SubmissionStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  async add(records: readonly SubmissionRecord[], queries: Queries): Promise<void> {
    for (const part of parts(records.map(rowOf)))
      await queries.insertInto('submissions').values(part).execute()
  }

  async byId(id: string, queries: Queries = this.#db): Promise<SubmissionRecord | null> {
    const row = await queries.selectFrom('submissions').selectAll().where('id', '=', id).executeTakeFirst()
    return row === undefined ? null : recordOf(row)
  }

  /** Newest first. */
  async list<Asked extends Part>(
    { status, type, text }: SubmissionFilter,
    part: Asked,
  ): Promise<PartOf<SubmissionRecord, Asked>> {
    let found = this.#db.selectFrom('submissions')
    if (status !== null) found = found.where('status', '=', status)
    if (type !== null) found = found.where('type', '=', type)
    if (text !== null) {
      const pattern = `%${text.replaceAll(/[!%_]/g, '!$&')}%`
      found = found.where(
        sql<boolean>`lower(value || ' ' || coalesce(agent_name, '') || ' ' || coalesce(software_id, '')) like lower(${pattern}) escape '!'`,
      )
    }
    return partOf(found, found.selectAll(), NEWEST_FIRST, part, recordOf)
  }

  /** The pending submissions of these fingerprints, oldest first. */
  async waiting(
    type: SubmissionType,
    values: readonly string[],
  ): Promise<readonly Pick<SubmissionRecord, 'id' | 'value' | 'agentName' | 'softwareId'>[]> {
    const rows = await this.#db
      .selectFrom('submissions')
      .select(['id', 'value', 'agent_name', 'software_id'])
      .where('value', 'in', values)
      .where('status', '=', 'pending')
      .where('type', '=', type)
      .orderBy('created_at_ms')
      .orderBy('id')
      .execute()
    return rows.map(({ id, value, agent_name: agentName, software_id: softwareId }) => {
      return { id, value, agentName, softwareId }
    })
  }

  /** The owners of exactly these fingerprints. */
  async registered(type: SubmissionType, values: readonly string[]): Promise<readonly Registered[]> {
    return this.#db
      .selectFrom('signatures')
      .innerJoin('software', 'software.id', 'signatures.software_id')
      .select(['value', 'software.id', 'software.name', 'kind', 'category'])
      .select([
        'source',
        'provenance',
        'observations',
        'confidence',
        'is_decisive as isDecisive',
        'signatures.first_seen_ms as firstSeenMs',
      ])
      .where('type', '=', type)
      .where('value', 'in', values)
      .where('status', '=', 'active')
      .execute()
  }

  /** The fingerprints that were seen on live traffic. */
  async seen(type: SubmissionType, values: readonly string[]): Promise<readonly FingerprintTraffic[]> {
    const rows = await this.#db
      .selectFrom('fingerprints_seen')
      .select(['value', 'requests', 'addresses', 'first_seen_ms', 'last_seen_ms'])
      .where('type', '=', type)
      .where('value', 'in', values)
      .execute()
    return rows.map(
      ({ value, requests, addresses, first_seen_ms: firstSeenMs, last_seen_ms: lastSeenMs }) => {
        return { value, requests, addresses, firstSeenMs, lastSeenMs }
      },
    )
  }

  /** Known software under each of its names, ordered by name, after `after`. Empty at the end. */
  async namesAfter(
    after: string,
    limit: number,
  ): Promise<readonly { readonly called: string; readonly software: NamedSoftware }[]> {
    const rows = await this.#db
      .selectFrom('software_names')
      .innerJoin('software', 'software.id', 'software_names.software_id')
      .select(['software_names.name as called', 'software.id', 'software.name', 'kind', 'category'])
      .where('software_names.name', '>', after)
      .orderBy('software_names.name')
      .limit(limit)
      .execute()
    return rows.map(({ called, ...software }) => ({ called, software }))
  }

  /** The number of pending submissions: all, and those of one principal. */
  async countWaiting(principal: string, queries: Queries): Promise<{ all: number; own: number }> {
    const { all, own } = await queries
      .selectFrom('submissions')
      .select(({ fn }) => fn.countAll<number>().as('all'))
      .select(({ fn }) => fn.countAll<number>().filterWhere('principal', '=', principal).as('own'))
      .where('status', '=', 'pending')
      .executeTakeFirstOrThrow()
    return { all: Number(all), own: Number(own) }
  }

  /** `false`: its status is no longer `from`. */
  async decide(
    id: string,
    from: SubmissionStatus,
    decision: SubmissionDecision,
    queries: Queries,
  ): Promise<boolean> {
    const { numUpdatedRows } = await queries
      .updateTable('submissions')
      .set({
        status: decision.status,
        software_id: decision.softwareId,
        made_software: decision.madeSoftware ? 1 : 0,
        decided_at_ms: decision.decidedAtMs,
        decided_by: decision.decidedBy,
        rolled_back_at_ms: decision.rolledBackAtMs,
      })
      .where('id', '=', id)
      .where('status', '=', from)
      .executeTakeFirst()
    return numUpdatedRows > 0n
  }

  /** Whether an accepted submission, rolled back or not, created this software. */
  async hasMade(softwareId: string, queries: Queries): Promise<boolean> {
    const row = await queries
      .selectFrom('submissions')
      .select('id')
      .where('software_id', '=', softwareId)
      .where('made_software', '=', 1)
      .executeTakeFirst()
    return row !== undefined
  }

  /** Deletes software that the API created, if all its signatures are retired. */
  async forgetMade(softwareId: string, queries: Queries): Promise<void> {
    const left = await queries
      .selectFrom('signatures')
      .select('value')
      .where('software_id', '=', softwareId)
      .where('status', '<>', 'retired')
      .limit(1)
      .executeTakeFirst()
    if (left !== undefined) return
    const { numDeletedRows } = await queries
      .deleteFrom('software')
      .where('id', '=', softwareId)
      .where('origin', '=', 'api')
      .executeTakeFirst()
    if (numDeletedRows === 0n) return
    await queries.deleteFrom('software_names').where('software_id', '=', softwareId).execute()
    await queries.deleteFrom('signatures').where('software_id', '=', softwareId).execute()
  }

  /**
   * Deletes some of the oldest rejected and duplicate submissions while there are more than `kept`.
   * Resolves to their fingerprints.
   */
  async forgetOldest(
    kept: number,
    queries: Queries,
  ): Promise<readonly { readonly type: SubmissionType; readonly value: string }[]> {
    const forgotten: { type: SubmissionType; value: string }[] = []
    for (const status of ['rejected', 'duplicate'] as const) {
      const some = await queries
        .deleteFrom('submissions')
        .where('id', 'in', (eb) =>
          eb
            .selectFrom('submissions')
            .select('id')
            .where('status', '=', status)
            .orderBy('created_at_ms', 'desc')
            .orderBy('id')
            .offset(kept)
            .limit(FORGOTTEN_MAX),
        )
        .returning(['type', 'value'])
        .execute()
      forgotten.push(...some)
    }
    return forgotten
  }
}

function rowOf(record: SubmissionRecord): SubmissionTable {
  const { id, principal, type, value, category, notes, status } = record
  return {
    id,
    principal,
    type,
    value,
    category,
    notes,
    status,
    created_at_ms: record.createdAtMs,
    agent_name: record.agentName,
    software_id: record.softwareId,
    user_agent: record.userAgent,
    purposes: JSON.stringify(record.purposes),
    reasons: JSON.stringify(record.reasons),
    duplicate_of: record.duplicateOf,
    made_software: record.madeSoftware ? 1 : 0,
    decided_at_ms: record.decidedAtMs,
    decided_by: record.decidedBy,
    rolled_back_at_ms: record.rolledBackAtMs,
  }
}

function recordOf(row: Selectable<SubmissionTable>): SubmissionRecord {
  const { id, principal, type, value, category, notes, status } = row
  return {
    id,
    principal,
    type,
    value,
    category,
    notes,
    status,
    createdAtMs: row.created_at_ms,
    agentName: row.agent_name,
    softwareId: row.software_id,
    userAgent: row.user_agent,
    purposes: JSON.parse(row.purposes) as Purpose[],
    reasons: JSON.parse(row.reasons) as SubmissionReason[],
    duplicateOf: row.duplicate_of,
    madeSoftware: row.made_software === 1,
    decidedAtMs: row.decided_at_ms,
    decidedBy: row.decided_by,
    rolledBackAtMs: row.rolled_back_at_ms,
  }
}

/** Takes two milliseconds. */
const FORGOTTEN_MAX = 1000
const NEWEST_FIRST: Order = {
  columns: [
    { name: 'submissions.created_at_ms', kind: 'whole' },
    { name: 'submissions.id', kind: 'text' },
  ],
  isDescending: true,
}
