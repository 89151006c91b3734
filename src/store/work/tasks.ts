import { type Kysely, sql } from 'kysely'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import { type Order, partOf, type Stretch, type StretchOf } from '../engine/page.ts'
import type { TaskTable } from '../engine/tables/tasks.ts'
import type { Tables } from '../engine/tables.ts'
import {
  columnsOf,
  type TaskRecord,
  type TaskFilter,
  type NewTask,
  type TaskItems,
  type ChunkDone,
  type Lease,
  taskRecord,
} from './task-record.ts'

/**
 * Tasks that outlive the process that started them. The holder of a task's lease processes it chunk by chunk.
 * Results are written only under a valid lease, so that no item gets two results.
 */
export class TaskStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  /** `false`: the principal has `openMax` unfinished tasks, so this one is not added. */
  async add(task: NewTask, openMax = Number.POSITIVE_INFINITY): Promise<boolean> {
    return this.#write(async (queries) => {
      if (openMax !== Number.POSITIVE_INFINITY) {
        // Concurrent additions wait and count this task. SQLite's transaction locks the file by itself.
        if (this.#kind === 'postgres')
          await sql`select pg_advisory_xact_lock(${LOCKS}, hashtext(${task.principal}))`.execute(queries)
        if ((await countOpen(task.principal, queries)) >= openMax) return false
      }
      await queries
        .insertInto('tasks')
        .values({ ...columnsOf(task), status: 'queued', completed: 0, failed: 0, attempts: 0 })
        .execute()
      for (const { number, from, items } of task.chunks)
        await queries
          .insertInto('task_chunks')
          .values({ task_id: task.id, number, from_item: from, items: JSON.stringify(items) })
          .execute()
      return true
    })
  }

  /** Adds a task that is already finished. */
  async addDone(task: NewTask, { results, failed }: ChunkDone, atMs: number): Promise<void> {
    const total = results.length
    const times = { started_at_ms: task.atMs, finished_at_ms: atMs, changed_at_ms: atMs }
    await this.#write(async (queries) => {
      await queries
        .insertInto('tasks')
        .values({ ...columnsOf(task), ...times, status: 'completed', completed: total, failed, attempts: 1 })
        .execute()
      await queries
        .insertInto('task_chunks')
        .values({ task_id: task.id, number: 0, from_item: 0, items: '', results: JSON.stringify(results) })
        .execute()
    })
  }

  async byId(id: string): Promise<TaskRecord | null> {
    const row = await this.#db.selectFrom('tasks').selectAll().where('id', '=', id).executeTakeFirst()
    return row === undefined ? null : taskRecord(row)
  }

  /** Those of these tasks that exist. */
  async some(ids: readonly string[]): Promise<readonly TaskRecord[]> {
    if (ids.length === 0) return []
    const rows = await this.#db.selectFrom('tasks').selectAll().where('id', 'in', ids).execute()
    return rows.map(taskRecord)
  }

  async setContext(id: string, contextId: string): Promise<void> {
    await this.#db.updateTable('tasks').set({ context_id: contextId }).where('id', '=', id).execute()
  }

  /** The last changed first, with the total number. */
  async of(
    principal: string,
    filter: TaskFilter,
    part: Stretch,
  ): Promise<StretchOf<TaskRecord> & { readonly total: number }> {
    const found = this.#found(principal, filter)
    const { total } = await found
      .select(({ fn }) => fn.countAll<number>().as('total'))
      .executeTakeFirstOrThrow()
    return {
      ...(await partOf(found, found.selectAll(), LAST_CHANGED_FIRST, part, taskRecord)),
      total: Number(total),
    }
  }

  #found(principal: string, { contextId, status, changedAfterMs }: TaskFilter) {
    let found = this.#db.selectFrom('tasks').where('principal', '=', principal)
    if (contextId !== null) found = found.where('context_id', '=', contextId)
    if (status !== null) found = found.where('status', '=', status)
    return changedAfterMs === null ? found : found.where('changed_at_ms', '>=', changedAfterMs)
  }

  /** Newest first. */
  async recent(principal: string, limit: number): Promise<readonly TaskRecord[]> {
    const rows = await this.#db
      .selectFrom('tasks')
      .selectAll()
      .where('principal', '=', principal)
      .orderBy('created_at_ms', 'desc')
      .orderBy('id', 'desc')
      .limit(limit)
      .execute()
    return rows.map(taskRecord)
  }

  /** The finished results in order: `limit` of them, after the first `skip`. */
  async results(id: string, skip: number, limit: number): Promise<readonly unknown[]> {
    // The chunk that contains the first result begins at or before it.
    const first = await this.#db
      .selectFrom('task_chunks')
      .select(({ fn }) => fn.max('from_item').as('from'))
      .where('task_id', '=', id)
      .where('from_item', '<=', skip)
      .executeTakeFirst()
    const from = Number(first?.from ?? 0)
    const rows = await this.#db
      .selectFrom('task_chunks')
      .select('results')
      .where('task_id', '=', id)
      .where('from_item', '>=', from)
      .where('from_item', '<', skip + limit)
      .where('results', 'is not', null)
      .orderBy('number')
      .execute()
    const found = rows.flatMap(({ results }) => JSON.parse(results!) as unknown[])
    return found.slice(skip - from, skip - from + limit)
  }

  /** Claims the oldest task that is queued or whose lease has expired. */
  async claim({ owner, nowMs, untilMs }: Lease): Promise<TaskRecord | null> {
    return this.#write(async (queries) => {
      const free = queries
        .selectFrom('tasks')
        .selectAll()
        .where((where) =>
          where.or([
            where('status', '=', 'queued'),
            where.and([where('status', '=', 'running'), where('lease_until_ms', '<', nowMs)]),
          ]),
        )
        .orderBy('created_at_ms')
        .orderBy('id')
        .limit(1)
      const found = await (this.#kind === 'postgres'
        ? free.forUpdate().skipLocked()
        : free
      ).executeTakeFirst()
      if (found === undefined) return null
      const attempts = found.attempts + 1
      const started_at_ms = found.started_at_ms ?? nowMs
      await queries
        .updateTable('tasks')
        .set({
          status: 'running',
          started_at_ms,
          changed_at_ms: nowMs,
          attempts,
          lease_owner: owner,
          lease_until_ms: untilMs,
        })
        .where('id', '=', found.id)
        .execute()
      await tellCallbacks(found.id, nowMs, queries)
      const claimed = { status: 'running' as const, startedAtMs: started_at_ms, changedAtMs: nowMs, attempts }
      return { ...taskRecord(found), ...claimed }
    })
  }

  /** `false`: another process holds the lease. */
  async extend(id: string, { owner, untilMs }: Lease): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable('tasks')
      .set({ lease_until_ms: untilMs })
      .where('id', '=', id)
      .where('lease_owner', '=', owner)
      .where('status', '=', 'running')
      .executeTakeFirst()
    return numUpdatedRows > 0n
  }

  /** The first unfinished chunk; `null`: all are finished. */
  async nextChunk(id: string): Promise<TaskItems | null> {
    const row = await this.#db
      .selectFrom('task_chunks')
      .select(['number', 'from_item', 'items'])
      .where('task_id', '=', id)
      .where('results', 'is', null)
      .where('items', '!=', '') // empty if cancelled
      .orderBy('number')
      .limit(1)
      .executeTakeFirst()
    if (row === undefined) return null
    return { number: row.number, from: row.from_item, items: JSON.parse(row.items) as unknown[] }
  }

  /** `false`: another process holds the lease, and nothing is written. */
  async chunkDone(id: string, { number, results, failed }: ChunkDone, lease: Lease): Promise<boolean> {
    return this.#write(async (queries) => {
      const { numUpdatedRows } = await queries
        .updateTable('tasks')
        .set(({ eb }) => ({
          completed: eb('completed', '+', results.length),
          failed: eb('failed', '+', failed),
          lease_until_ms: lease.untilMs,
          attempts: 0,
        }))
        .where('id', '=', id)
        .where('lease_owner', '=', lease.owner)
        .where('status', '=', 'running')
        .executeTakeFirst()
      if (numUpdatedRows === 0n) return false
      await queries
        .updateTable('task_chunks')
        .set({ results: JSON.stringify(results), items: '' })
        .where('task_id', '=', id)
        .where('number', '=', number)
        .execute()
      return true
    })
  }

  /** `false`: another process holds the lease. */
  async finish(
    id: string,
    status: 'completed' | 'failed',
    error: string | null,
    lease: Lease,
  ): Promise<boolean> {
    return this.#write((queries) =>
      this.#end(queries, id, { status, error, finished_at_ms: lease.nowMs }, lease.owner),
    )
  }

  /** `false`: it has already ended. */
  async cancel(id: string, atMs: number): Promise<boolean> {
    return this.#write((queries) =>
      this.#end(queries, id, { status: 'cancelled', error: null, finished_at_ms: atMs }, null),
    )
  }

  /**
   * Requeues the tasks of a process that shuts down, so that others need not wait for its
   * leases to expire. `null`: all tasks.
   */
  async release(owner: string | null): Promise<void> {
    const running = this.#db.updateTable('tasks').where('status', '=', 'running')
    await (owner === null ? running : running.where('lease_owner', '=', owner))
      .set(({ eb }) => ({
        status: 'queued' as const,
        lease_owner: null,
        lease_until_ms: null,
        attempts: eb('attempts', '-', owner === null ? 0 : 1),
      }))
      .execute()
  }

  /** Deletes some tasks that ended before then. Resolves to their number. */
  async forget(endedBeforeMs: number, limit: number): Promise<number> {
    return this.#write(async (queries) => {
      const old = await queries
        .selectFrom('tasks')
        .select('id')
        .where('finished_at_ms', '<', endedBeforeMs)
        .orderBy('finished_at_ms')
        .limit(limit)
        .execute()
      const ids = old.map(({ id }) => id)
      if (ids.length === 0) return 0
      await queries.deleteFrom('task_chunks').where('task_id', 'in', ids).execute()
      await queries.deleteFrom('tasks').where('id', 'in', ids).execute()
      return ids.length
    })
  }

  /** Ends a task and deletes its remaining items. `owner`: the required lease owner; `null`: any. */
  async #end(
    queries: Queries,
    id: string,
    ended: Pick<TaskTable, 'status' | 'error' | 'finished_at_ms'>,
    owner: string | null,
  ): Promise<boolean> {
    const open = queries
      .updateTable('tasks')
      .set({ ...ended, changed_at_ms: ended.finished_at_ms!, lease_owner: null, lease_until_ms: null })
      .where('id', '=', id)
      .where('finished_at_ms', 'is', null)
    const { numUpdatedRows } = await (owner === null
      ? open
      : open.where('lease_owner', '=', owner)
    ).executeTakeFirst()
    if (numUpdatedRows === 0n) return false
    await queries
      .updateTable('task_chunks')
      .set({ items: '' })
      .where('task_id', '=', id)
      .where('results', 'is', null)
      .execute()
    await tellCallbacks(id, ended.finished_at_ms!, queries)
    return true
  }

  #write<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result> {
    return this.#db.transaction().execute(work)
  }
}

/** The number of unfinished tasks. */
async function countOpen(principal: string, queries: Queries): Promise<number> {
  const { count } = await queries
    .selectFrom('tasks')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('principal', '=', principal)
    .where('finished_at_ms', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/**
 * The first half of a lock pair, with one lock for each principal. Pairs do not collide with the
 * single numbers of other locks.
 */
const LOCKS = 71_642_019

/**
 * Makes the callbacks of a task due. Runs in the transaction that changes the status, so that no
 * change is lost. A callback that is being sent or waits for a retry is unchanged, so that it never
 * gets two notifications at once.
 */
async function tellCallbacks(id: string, atMs: number, queries: Queries): Promise<void> {
  await queries
    .updateTable('task_callbacks')
    .set({ next_at_ms: atMs, attempts: 0 })
    .where('task_id', '=', id)
    .where('next_at_ms', 'is', null)
    .execute()
}

const LAST_CHANGED_FIRST: Order = {
  columns: [
    { name: 'tasks.changed_at_ms', kind: 'whole' },
    { name: 'tasks.id', kind: 'text' },
  ],
  isDescending: true,
}
