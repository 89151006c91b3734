import type { Kysely } from 'kysely'
import type { Queries } from '../engine/database.ts'
import type { Fingerprint } from './trials.ts'
import type { SubmissionType } from './submissions.ts'
import type { Tables } from '../engine/tables.ts'

/** An operator's feedback on a decision. */
export interface Feedback {
  readonly id: string
  readonly decisionId: string
  readonly atMs: number
  readonly principal: string
  /** The correct answer according to the operator. */
  readonly told: 'agent' | 'human'
  readonly toldSoftwareId: string | null
  /** The verdict of the decision. */
  readonly verdict: string
  readonly verdictSoftwareId: string | null
  /** The fingerprints of the request. */
  readonly fingerprints: readonly Fingerprint[]
}

/** How often operators gave this feedback on requests with a fingerprint. */
export interface FeedbackCount {
  readonly value: string
  readonly told: 'agent' | 'human'
  /** The agent that they named. */
  readonly softwareId: string | null
  /** The verdict of the decision. */
  readonly verdict: string
  readonly count: number
}

export class FeedbackStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** New feedback on a decision replaces the old. */
  async put(feedback: Feedback, queries: Queries): Promise<void> {
    const { id, decisionId, principal, told, verdict, fingerprints } = feedback
    const said = { id, principal, told, verdict, at_ms: feedback.atMs }
    const named = {
      told_software_id: feedback.toldSoftwareId,
      verdict_software_id: feedback.verdictSoftwareId,
    }
    await queries
      .insertInto('feedback')
      .values({ decision_id: decisionId, ...said, ...named })
      .onConflict((conflict) => conflict.column('decision_id').doUpdateSet({ ...said, ...named }))
      .execute()
    if (fingerprints.length === 0) return
    await queries
      .insertInto('feedback_fingerprints')
      .values(fingerprints.map(({ type, value }) => ({ decision_id: decisionId, type, value })))
      .onConflict((conflict) => conflict.columns(['decision_id', 'type']).doNothing())
      .execute()
  }

  async toldOf(type: SubmissionType, values: readonly string[]): Promise<readonly FeedbackCount[]> {
    if (values.length === 0) return []
    const rows = await this.#db
      .selectFrom('feedback_fingerprints as fingerprints')
      .innerJoin('feedback', 'feedback.decision_id', 'fingerprints.decision_id')
      .select(['fingerprints.value', 'told', 'told_software_id', 'verdict'])
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('fingerprints.type', '=', type)
      .where('fingerprints.value', 'in', values)
      .groupBy(['fingerprints.value', 'told', 'told_software_id', 'verdict'])
      .execute()
    return rows.map(({ value, told, told_software_id: softwareId, verdict, count }) => {
      return { value, told, softwareId, verdict, count: Number(count) }
    })
  }

  /** Deletes feedback from before then, at most `rowsMax`. Resolves to its number. */
  async forget(beforeMs: number, rowsMax: number): Promise<number> {
    return this.#db.transaction().execute(async (queries) => {
      const old = queries.selectFrom('feedback').select('decision_id').where('at_ms', '<', beforeMs)
      const rows = await old.orderBy('at_ms').limit(rowsMax).execute()
      if (rows.length > 0)
        await remove(
          rows.map(({ decision_id }) => decision_id),
          queries,
        )
      return rows.length
    })
  }

  /** Deletes some of the oldest while there are more than `kept`. */
  async forgetOldest(kept: number, queries: Queries): Promise<void> {
    const oldest = await queries
      .selectFrom('feedback')
      .select('decision_id')
      .orderBy('at_ms', 'desc')
      .offset(kept)
      .limit(FORGOTTEN_MAX)
      .execute()
    if (oldest.length === 0) return
    await remove(
      oldest.map(({ decision_id }) => decision_id),
      queries,
    )
  }
}

async function remove(ids: readonly string[], queries: Queries): Promise<void> {
  await queries.deleteFrom('feedback_fingerprints').where('decision_id', 'in', ids).execute()
  await queries.deleteFrom('feedback').where('decision_id', 'in', ids).execute()
}

const FORGOTTEN_MAX = 1000
