import { type Kysely, type Selectable, sql } from 'kysely'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import { type Order, partOf, type Stretch, type StretchOf } from '../engine/page.ts'
import type { TaskStatus, TaskTable } from '../engine/tables/tasks.ts'
import type { Tables } from '../engine/tables.ts'

export interface TaskRecord {
  readonly id: string
  readonly principal: string
  readonly type: string
  readonly status: TaskStatus
  readonly total: number
  readonly completed: number
  readonly failed: number
  readonly createdAtMs: number
  readonly startedAtMs: number | null
  readonly finishedAtMs: number | null
  readonly attempts: number
  readonly error: string | null
  /** When its status became what it is. */
  readonly changedAtMs: number
  /** What its principal has put it together with; `null`: nothing. */
  readonly contextId: string | null
}

/** Which of somebody's tasks. */
export interface TaskFilter {
  readonly contextId: string | null
  readonly status: TaskStatus | null
  /** In their status since. */
  readonly changedAfterMs: number | null
}

export interface NewTask {
  readonly id: string
  readonly principal: string
  readonly type: string
  readonly atMs: number
  readonly chunks: readonly TaskItems[]
}

/** Items that are done together. */
export interface TaskItems {
  readonly number: number
  /** Of the first one, in the task. */
  readonly from: number
  readonly items: readonly unknown[]
}

/** What became of them. */
export interface ChunkDone {
  readonly number: number
  readonly results: readonly unknown[]
  readonly failed: number
}

/** Who works on a task, and until when nobody else may. */
export interface Lease {
  readonly owner: string
  readonly nowMs: number
  readonly untilMs: number
}

/**
 * Tasks that outlive the process that began them. Whoever holds the lease of one works on it, chunk by chunk; what is
 * done of it is written only while the lease is his, so that no item has two results, whoever else took it for lost.
 */
export class TaskStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  /** `false`: as many of its principal's as that are not finished, and it is not added. */
  async add(task: NewTask, openMax = Number.POSITIVE_INFINITY): Promise<boolean> {
    return this.#write(async (queries) => {
      if (openMax !== Number.POSITIVE_INFINITY) {
        // Who adds at the same moment waits, and counts this one. SQLite's transaction holds the file by itself.
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

  /** One that was done before anybody could ask for it. */
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
    return row === undefined ? null : record(row)
  }

  /** Those of these that are there. */
  async some(ids: readonly string[]): Promise<readonly TaskRecord[]> {
    if (ids.length === 0) return []
    const rows = await this.#db.selectFrom('tasks').selectAll().where('id', 'in', ids).execute()
    return rows.map(record)
  }

  async setContext(id: string, contextId: string): Promise<void> {
    await this.#db.updateTable('tasks').set({ context_id: contextId }).where('id', '=', id).execute()
  }

  /** Those whose status has changed last first; and how many there are in all. */
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
      ...(await partOf(found, found.selectAll(), LAST_CHANGED_FIRST, part, record)),
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
    return rows.map(record)
  }

  /** Of those that are done, in their order: `limit` of them, after the first `skip`. */
  async results(id: string, skip: number, limit: number): Promise<readonly unknown[]> {
    // The chunk in which the first one is begins before it.
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

  /** The oldest that nobody works on, or whose worker is lost. It is the lease's owner's from now on. */
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
          ...{ status: 'running', started_at_ms, changed_at_ms: nowMs },
          ...{ attempts, lease_owner: owner, lease_until_ms: untilMs },
        })
        .where('id', '=', found.id)
        .execute()
      await tellCallbacks(found.id, nowMs, queries)
      const claimed = { status: 'running' as const, startedAtMs: started_at_ms, changedAtMs: nowMs, attempts }
      return { ...record(found), ...claimed }
    })
  }

  /** `false`: it is no longer his. */
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

  /** The first of its chunks that is not done; `null`: all are. */
  async nextChunk(id: string): Promise<TaskItems | null> {
    const row = await this.#db
      .selectFrom('task_chunks')
      .select(['number', 'from_item', 'items'])
      .where('task_id', '=', id)
      .where('results', 'is', null)
      .where('items', '!=', '') // it was cancelled
      .orderBy('number')
      .limit(1)
      .executeTakeFirst()
    if (row === undefined) return null
    return { number: row.number, from: row.from_item, items: JSON.parse(row.items) as unknown[] }
  }

  /** `false`: it is no longer his, and nothing is written. */
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

  /** `false`: it is no longer his. */
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

  /** `false`: it has ended before. */
  async cancel(id: string, atMs: number): Promise<boolean> {
    return this.#write((queries) =>
      this.#end(queries, id, { status: 'cancelled', error: null, finished_at_ms: atMs }, null),
    )
  }

  /** What a process that ends in order has begun: others need not wait for its leases to run out. `null`: anybody's. */
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

  /** Some of those that ended before; how many. */
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

  /** With what was to be done yet. `owner`: whose it has to be; `null`: anybody's. */
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

/** Those that are not finished. */
async function countOpen(principal: string, queries: Queries): Promise<number> {
  const { count } = await queries
    .selectFrom('tasks')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('principal', '=', principal)
    .where('finished_at_ms', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Those of one principal, each by its own: pairs of numbers do not meet the single ones that others lock. */
const LOCKS = 71_642_019

/**
 * Its status has changed: in the transaction that changes it, so that nothing is lost between. What is being told, or is
 * waited with, stays so: nobody is told of two at once.
 */
async function tellCallbacks(id: string, atMs: number, queries: Queries): Promise<void> {
  await queries
    .updateTable('task_callbacks')
    .set({ next_at_ms: atMs, attempts: 0 })
    .where('task_id', '=', id)
    .where('next_at_ms', 'is', null)
    .execute()
}

function columnsOf({ id, principal, type, atMs, chunks }: NewTask) {
  const total = chunks.reduce((sum, { items }) => sum + items.length, 0)
  return { id, principal, type, total, created_at_ms: atMs, changed_at_ms: atMs }
}

function record(row: Selectable<TaskTable>): TaskRecord {
  const { id, principal, type, status, total, completed, failed, attempts, error } = row
  return {
    ...{ id, principal, type, status, total, completed, failed, attempts, error },
    createdAtMs: row.created_at_ms,
    startedAtMs: row.started_at_ms,
    finishedAtMs: row.finished_at_ms,
    changedAtMs: row.changed_at_ms,
    contextId: row.context_id,
  }
}

const LAST_CHANGED_FIRST: Order = {
  columns: [
    { name: 'tasks.changed_at_ms', kind: 'whole' },
    { name: 'tasks.id', kind: 'text' },
  ],
  isDescending: true,
}
