import type { Kysely, Selectable } from 'kysely'
import { AddressSketch } from '../engine/address-sketch.ts'
import { parts } from '../engine/bulk.ts'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import type { SubmissionType } from './submissions.ts'
import type { TrialTable } from '../engine/tables/submissions.ts'
import type { Tables } from '../engine/tables.ts'

/** The live traffic of a fingerprint since it was submitted. */
export interface Trial {
  readonly type: SubmissionType
  readonly value: string
  readonly sinceMs: number
  readonly isOpen: boolean
  readonly hits: number
  readonly firstHitMs: number | null
  readonly lastHitMs: number | null
  /** Estimates the distinct addresses. */
  readonly addresses: AddressSketch
  readonly verdicts: readonly VerdictCount[]
}

/** How often a verdict occurred. */
export interface VerdictCount {
  readonly verdict: string
  /** The agent that the verdict named. */
  readonly agentId: string | null
  readonly count: number
}

export type Fingerprint = Pick<Trial, 'type' | 'value'>

export class TrialStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind
  #begun = 0

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  /** Increases whenever a trial opens. Tells caches of `counted` to refresh. */
  get begun(): number {
    return this.#begun
  }

  /** Starts or resumes counting. */
  async open(fingerprints: readonly Fingerprint[], atMs: number, queries: Queries): Promise<void> {
    // Deduplicated and sorted: PostgreSQL cannot upsert a row twice in one statement, and one
    // lock order prevents deadlocks.
    const keys = [...new Set(fingerprints.map(({ type, value }) => `${type} ${value}`))].sort()
    const rows = keys.map((key) => {
      const [type, value] = key.split(' ', 2) as [SubmissionType, string]
      return {
        type,
        value,
        since_ms: atMs,
        is_open: 1,
        hits: 0,
        first_hit_ms: null,
        last_hit_ms: null,
        addresses: new AddressSketch().text,
        verdicts: '[]',
      }
    })
    if (rows.length > 0) this.#begun++
    for (const part of parts(rows))
      await queries
        .insertInto('trials')
        .values(part)
        .onConflict((conflict) => conflict.columns(['type', 'value']).doUpdateSet({ is_open: 1 }))
        .execute()
  }

  /** Stops counting, unless another submission of the fingerprint is pending. */
  async close(type: SubmissionType, value: string, queries: Queries): Promise<void> {
    await queries
      .updateTable('trials')
      .set({ is_open: 0 })
      .where('type', '=', type)
      .where('value', '=', value)
      .where(({ eb, exists, not }) =>
        not(
          exists(
            eb
              .selectFrom('submissions')
              .select('id')
              .where('submissions.value', '=', value)
              .where('submissions.status', '=', 'pending')
              .where('submissions.type', '=', type),
          ),
        ),
      )
      .execute()
  }

  /** The fingerprints that are being counted. */
  async counted(queries: Queries = this.#db): Promise<readonly Fingerprint[]> {
    return queries.selectFrom('trials').select(['type', 'value']).where('is_open', '=', 1).execute()
  }

  async of(
    type: SubmissionType,
    values: readonly string[],
    queries: Queries = this.#db,
  ): Promise<readonly Trial[]> {
    if (values.length === 0) return []
    const rows = await queries
      .selectFrom('trials')
      .selectAll()
      .where('type', '=', type)
      .where('value', 'in', values)
      .execute()
    return rows.map(trialOf)
  }

  /** Like `of`, for open trials only. Locks the rows until the transaction ends. */
  async held(type: SubmissionType, values: readonly string[], queries: Queries): Promise<readonly Trial[]> {
    const found = queries
      .selectFrom('trials')
      .selectAll()
      .where('type', '=', type)
      .where('value', 'in', values)
      .where('is_open', '=', 1)
      // One lock order for all transactions prevents deadlocks.
      .orderBy('value')
    const rows = await (this.#kind === 'postgres' ? found.forUpdate() : found).execute()
    return rows.map(trialOf)
  }

  /** Stores the counts of trials that are locked by `held`. */
  async put(trials: readonly Trial[], queries: Queries): Promise<void> {
    for (const part of parts(trials.map(rowOf)))
      await queries
        .insertInto('trials')
        .values(part)
        .onConflict((conflict) =>
          conflict.columns(['type', 'value']).doUpdateSet(({ ref }) => ({
            hits: ref('excluded.hits'),
            first_hit_ms: ref('excluded.first_hit_ms'),
            last_hit_ms: ref('excluded.last_hit_ms'),
            addresses: ref('excluded.addresses'),
            verdicts: ref('excluded.verdicts'),
          })),
        )
        .execute()
  }

  /** Deletes the trials that no submission refers to. */
  async forget(fingerprints: readonly Fingerprint[], queries: Queries): Promise<void> {
    for (const { type, value } of fingerprints)
      await queries
        .deleteFrom('trials')
        .where('type', '=', type)
        .where('value', '=', value)
        .where(({ eb, exists, not }) =>
          not(
            exists(
              eb.selectFrom('submissions').select('id').where('value', '=', value).where('type', '=', type),
            ),
          ),
        )
        .execute()
  }
}

function rowOf({ type, value, hits, addresses, verdicts, ...trial }: Trial): TrialTable {
  return {
    type,
    value,
    hits,
    addresses: addresses.text,
    since_ms: trial.sinceMs,
    is_open: trial.isOpen ? 1 : 0,
    first_hit_ms: trial.firstHitMs,
    last_hit_ms: trial.lastHitMs,
    verdicts: JSON.stringify(verdicts.map(({ verdict, agentId, count }) => [verdict, agentId, count])),
  }
}

function trialOf(row: Selectable<TrialTable>): Trial {
  const { type, value, hits } = row
  const verdicts = JSON.parse(row.verdicts) as [string, string | null, number][]
  return {
    type,
    value,
    hits,
    sinceMs: row.since_ms,
    isOpen: row.is_open === 1,
    firstHitMs: row.first_hit_ms,
    lastHitMs: row.last_hit_ms,
    addresses: AddressSketch.parse(row.addresses),
    verdicts: verdicts.map(([verdict, agentId, count]) => ({ verdict, agentId, count })),
  }
}
