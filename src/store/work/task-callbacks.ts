import { type Kysely, type Selectable, sql } from 'kysely'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import type { TaskCallbackTable, TaskStatus } from '../engine/tables/tasks.ts'
import type { Tables } from '../engine/tables.ts'

/** A URL that is notified when the status of a task changes. */
export interface TaskCallback {
  readonly taskId: string
  /** Unique within its task. */
  readonly id: string
  readonly url: string
  /** The credentials that we send, encrypted; `null`: no credentials. */
  readonly sealed: string | null
  readonly createdAtMs: number
}

/** A callback that has not received the newest status. */
export interface DueCallback extends TaskCallback {
  readonly principal: string
  /** The number of failed attempts in a row. */
  readonly attempts: number
  /** No other process takes it before then. */
  readonly heldUntilMs: number
}

/** The result of a notification. */
export interface CallbackTold {
  /** `null`: it failed. */
  readonly told: TaskStatus | null
  readonly error: string | null
  /** `null`: not before the status changes. */
  readonly nextAtMs: number | null
}

/**
 * Stores the state of each callback instead of a list of changes. A slow receiver gets
 * only the newest status, and a task needs one row for each callback. Changes of a task
 * make its callbacks due, see TaskStore.
 */
export class TaskCallbackStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  /** Replaces a callback with the same id. `false`: the task does not exist, or has `max` others. */
  async put(callback: TaskCallback, max: number): Promise<boolean> {
    const { taskId, id, url, sealed, createdAtMs } = callback
    return this.#db.transaction().execute(async (queries) => {
      // Of two concurrent calls, the second waits here for the first to commit.
      const locked = queries.updateTable('tasks').set(({ ref }) => ({ id: ref('id') }))
      if ((await locked.where('id', '=', taskId).executeTakeFirst()).numUpdatedRows === 0n) return false
      await remove(taskId, id, queries)
      const { others } = await queries
        .selectFrom('task_callbacks')
        .select(({ fn }) => fn.countAll<number>().as('others'))
        .where('task_id', '=', taskId)
        .executeTakeFirstOrThrow()
      if (Number(others) >= max) return false
      const { status } = await queries
        .selectFrom('tasks')
        .select('status')
        .where('id', '=', taskId)
        .executeTakeFirstOrThrow()
      const row = { task_id: taskId, id, url, sealed, created_at_ms: createdAtMs }
      const next_at_ms = status === 'queued' ? null : createdAtMs
      await queries
        .insertInto('task_callbacks')
        .values({ ...row, told: 'queued', attempts: 0, next_at_ms })
        .execute()
      return true
    })
  }

  /** The callbacks of one task, oldest first. */
  async of(taskId: string): Promise<readonly TaskCallback[]> {
    const rows = await this.#db
      .selectFrom('task_callbacks')
      .selectAll()
      .where('task_id', '=', taskId)
      .orderBy('created_at_ms')
      .orderBy('id')
      .execute()
    return rows.map(record)
  }

  /** Does nothing if it does not exist. */
  async remove(taskId: string, id: string): Promise<void> {
    await remove(taskId, id, this.#db)
  }

  /**
   * Claims due callbacks until `untilMs`, the longest due first, except those of the principals in `except`.
   */
  async claim(
    { nowMs, untilMs }: { readonly nowMs: number; readonly untilMs: number },
    limit: number,
    except: readonly string[],
  ): Promise<readonly DueCallback[]> {
    return this.#db.transaction().execute(async (queries) => {
      let due = queries
        .selectFrom('task_callbacks')
        .innerJoin('tasks', 'tasks.id', 'task_callbacks.task_id')
        .selectAll('task_callbacks')
        .select('tasks.principal')
        .where('next_at_ms', '<=', nowMs)
        .whereRef('tasks.status', '!=', 'task_callbacks.told')
      if (except.length > 0) due = due.where('tasks.principal', 'not in', except)
      const some = due.orderBy('next_at_ms').limit(limit)
      const rows = await (this.#kind === 'postgres'
        ? some.forUpdate('task_callbacks').skipLocked()
        : some
      ).execute()
      for (const row of rows) await hold(row, untilMs, queries)
      return rows.map((row) => ({
        ...record(row),
        principal: row.principal,
        attempts: row.attempts,
        heldUntilMs: untilMs,
      }))
    })
  }

  /**
   * Does nothing if the callback was removed or replaced meanwhile. If the status has changed
   * again, the callback is due again.
   */
  async done(due: DueCallback, { told, error, nextAtMs }: CallbackTold): Promise<void> {
    const { taskId, id, heldUntilMs } = due
    const attempts = told === null ? sql<number>`attempts + 1` : 0
    await this.#db.transaction().execute(async (queries) => {
      // A transaction that changes the status has committed before this, or waits here and then makes it due.
      const task = queries.selectFrom('tasks').select('status').where('id', '=', taskId)
      const held = await (this.#kind === 'postgres' ? task.forUpdate() : task).executeTakeFirst()
      const own = queries.updateTable('task_callbacks').where('task_id', '=', taskId).where('id', '=', id)
      const { numUpdatedRows } = await own
        .set({ ...(told === null ? {} : { told }), attempts, error, next_at_ms: nextAtMs })
        .where('next_at_ms', '=', heldUntilMs)
        .executeTakeFirst()
      if (numUpdatedRows === 0n || told === null) return
      if (held?.status !== told) await own.set({ next_at_ms: 0 }).execute()
    })
  }
}

async function remove(taskId: string, id: string, queries: Kysely<Tables> | Queries): Promise<void> {
  await queries.deleteFrom('task_callbacks').where('task_id', '=', taskId).where('id', '=', id).execute()
}

async function hold(
  { task_id, id }: Pick<TaskCallbackTable, 'task_id' | 'id'>,
  untilMs: number,
  queries: Queries,
): Promise<void> {
  await queries
    .updateTable('task_callbacks')
    .set({ next_at_ms: untilMs })
    .where('task_id', '=', task_id)
    .where('id', '=', id)
    .execute()
}

function record(row: Selectable<TaskCallbackTable>): TaskCallback {
  const { task_id: taskId, id, url, sealed, created_at_ms: createdAtMs } = row
  return { taskId, id, url, sealed, createdAtMs }
}
