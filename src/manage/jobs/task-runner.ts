import { appScopeOf } from '../../apps/app-scope.ts'
import { randomUUID } from 'node:crypto'
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'
import { Fault } from '../../shared/fault.ts'
import type { Lease, TaskRecord } from '../../store/work/task-record.ts'
import type { Principal } from '../http/access/principal.ts'
import { Doze } from '../http/doze.ts'
import type { JobsContext } from './context.ts'
import { Refusal } from '../http/refusal.ts'
import { doItems, type TaskType } from './task-types.ts'
import type { ToolCaller } from './tools.ts'

/**
 * Works on tasks that are too large for one answer, in a few lanes with one task each, in parallel with other
 * processes. If a process dies, another one continues its tasks, or the same one after a restart.
 */
export class TaskRunner<Context extends Pick<JobsContext, 'store' | 'log' | 'snapshot' | 'nowMs'>> {
  readonly #types: ReadonlyMap<string, TaskType<Context>>
  readonly #management: Context
  readonly #owner = randomUUID()
  readonly #closing = new AbortController()
  #lanes: readonly Promise<void>[] = []
  readonly #doze: Doze

  constructor(types: ReadonlyMap<string, TaskType<Context>>, management: Context) {
    this.#types = types
    this.#management = management
    this.#doze = new Doze(POLL_MS, this.#closing.signal)
  }

  /** Resolves when the lanes are running. */
  async start(): Promise<void> {
    const { store } = this.#management
    // Only one process uses a SQLite database, so whatever held leases before has died.
    if (store.kind === 'sqlite') await this.#attempt(() => store.tasks.release(null))
    this.#lanes = Array.from({ length: LANES }, () => this.#lane())
  }

  /** Call it if there may be something to do. */
  wake(): void {
    this.#doze.wake()
  }

  /** Releases its tasks, so that another process, or this one after a restart, continues them. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.wake()
    await Promise.race([Promise.all(this.#lanes), wait(CLOSE_MS)])
    await this.#attempt(() => this.#management.store.tasks.release(this.#owner))
  }

  async #lane(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      const woken = this.#doze.woken
      const task = this.#canJudge()
        ? await this.#attempt(() => this.#management.store.tasks.claim(this.#lease()))
        : null
      if (task != null) await this.#attempt(() => this.#work(task))
      else await this.#doze.pause(woken)
    }
  }

  #canJudge(): boolean {
    return (this.#management.snapshot()?.knowledge ?? null) !== null
  }

  /** The database may be temporarily unavailable. Work that fails is tried again later. */
  async #attempt<Result>(work: () => Promise<Result>): Promise<Result | null> {
    try {
      return await work()
    } catch (error) {
      const isForNow =
        (error instanceof Fault && error.code.startsWith('STORE_')) ||
        (error instanceof Refusal && error.code === 'unavailable')
      if (!isForNow) this.#management.log.error('a task has met a bug', { error: error as Error })
      await this.#doze.pause(this.#doze.woken)
      return null
    }
  }

  async #work(task: TaskRecord): Promise<void> {
    const { store } = this.#management
    const type = this.#types.get(task.type)
    if (type === undefined) return void (await this.#finish(task, 'there is no task of this type any more'))
    if (task.attempts > ATTEMPTS_MAX)
      return void (await this.#finish(task, `it was given up after ${ATTEMPTS_MAX} attempts`))
    const held = this.#hold(task)
    try {
      const caller = callerOf(task, type)
      for (;;) {
        if (this.#closing.signal.aborted) return
        const chunk = await store.tasks.nextChunk(task.id)
        if (chunk === null) return void (await this.#finish(task, null))
        const { number } = chunk
        const results = await doItems(type, chunk, caller, this.#management, turn)
        const failed = results.filter(({ status }) => status === 'error').length
        if (!(await store.tasks.chunkDone(task.id, { number, results, failed }, this.#lease()))) return
        await turn()
      }
    } finally {
      clearInterval(held)
    }
  }

  /** Renews the lease as long as this process lives, however long a chunk takes. */
  #hold({ id }: TaskRecord): NodeJS.Timeout {
    return setInterval(() => {
      // A process that lost its lease notices it at the next write.
      this.#management.store.tasks.extend(id, this.#lease()).catch(() => undefined)
    }, LEASE_MS / 4).unref()
  }

  #finish({ id }: TaskRecord, error: string | null): Promise<boolean> {
    return this.#management.store.tasks.finish(
      id,
      error === null ? 'completed' : 'failed',
      error,
      this.#lease(),
    )
  }

  #lease(): Lease {
    const nowMs = this.#management.nowMs()
    return { owner: this.#owner, nowMs, untilMs: nowMs + LEASE_MS }
  }
}

/** A caller with the scopes that the principal had to have to create the task, and the apps that it had. */
export function callerOf(
  { id, principal, apps }: Pick<TaskRecord, 'id' | 'principal' | 'apps'>,
  type: TaskType,
): ToolCaller {
  const asked: Principal = {
    id: principal,
    name: principal,
    scopes: new Set(type.tool.scopes),
    apps: appScopeOf(apps),
    plan: 'standard',
    expiresAtMs: null,
  }
  return { principal: asked, requestId: id, address: '' }
}

/** More than one, so that a long task does not block the others. */
const LANES = 2
/** How long it takes until another process takes over from one that was killed. */
const LEASE_MS = 10_000
/** How often to look for the tasks of other processes. */
const POLL_MS = 1_000
/** Limits the attempts at a task that kills its process each time. */
const ATTEMPTS_MAX = 5
/** Chunks that take longer are started again. */
const CLOSE_MS = 2_000
