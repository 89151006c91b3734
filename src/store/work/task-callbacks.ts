import { type Kysely, type Selectable, sql } from 'kysely'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import type { TaskCallbackTable, TaskStatus } from '../engine/tables/tasks.ts'
import type { Tables } from '../engine/tables.ts'

/** Where somebody wants to be told when the status of a task changes. */
export interface TaskCallback {
  readonly taskId: string
  /** Of those of its task. */
  readonly id: string
  readonly url: string
  /** What proves there that it is us, encrypted; `null`: nothing does. */
  readonly sealed: string | null
  readonly createdAtMs: number
}

/** Somewhere the newest status has not been told yet. */
export interface DueCallback extends TaskCallback {
  readonly principal: string
  /** How often in a row it could not be told. */
  readonly attempts: number
  /** Nobody else takes it up before then. */
  readonly heldUntilMs: number
}

/** What came of telling it. */
export interface CallbackTold {
  /** `null`: it could not be told. */
  readonly told: TaskStatus | null
  readonly error: string | null
  /** `null`: not before the status changes. */
  readonly nextAtMs: number | null
}

/**
 * What is kept is where each callback stands, and no list of what has happened: whoever is slow is told the newest
 * status, and each task costs as many rows as it has callbacks. What changes a task makes them due, see TaskStore.
 */
export class TaskCallbackStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  /** In the place of one of the same id. `false`: its task is gone, or has `max` others. */
  async put(callback: TaskCallback, max: number): Promise<boolean> {
    const { taskId, id, url, sealed, createdAtMs } = callback
    return this.#db.transaction().execute(async (queries) => {
      // Of two at once the second waits here for the first one's end.
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

  /** Of one task, oldest first. */
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

  /** Whether it is there or not. */
  async remove(taskId: string, id: string): Promise<void> {
    await remove(taskId, id, this.#db)
  }

  /** Those that have something to be told, longest due first, and nobody's of `except`; nobody else gets them until then. */
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
        ...{ principal: row.principal, attempts: row.attempts, heldUntilMs: untilMs },
      }))
    })
  }

  /** Nothing, where it has been removed, or put anew, meanwhile. Where the status is another one by now it is due again. */
  async done(due: DueCallback, { told, error, nextAtMs }: CallbackTold): Promise<void> {
    const { taskId, id, heldUntilMs } = due
    const attempts = told === null ? sql<number>`attempts + 1` : 0
    await this.#db.transaction().execute(async (queries) => {
      // Whoever changes the status has done so before, or waits here for the end of this, and makes it due.
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
