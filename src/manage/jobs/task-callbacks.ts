import type { LookupFunction } from 'node:net'
import { Fault } from '../../shared/fault.ts'
import { FetchFault } from '../../identity/fetch/guarded-get.ts'
import { guardedPost } from '../../identity/fetch/guarded-post.ts'
import type { CallbackTold, DueCallback } from '../../store/work/task-callbacks.ts'
import type { TaskRecord } from '../../store/work/tasks.ts'
import { Doze } from '../http/doze.ts'
import type { Management } from '../management.ts'

/** What proves at a callback that it is us who tells. */
export interface CallbackSecret {
  readonly token: string | null
  /** For `Authorization`: `Bearer`, and what follows it. */
  readonly scheme: string | null
  readonly credentials: string | null
  /** What is told is signed with it, as Standard Webhooks have it; else it is told as A2A has it. */
  readonly signing?: string | undefined
}

/** What is told. */
export interface CallbackMessage {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface CallbackSettings {
  message(task: TaskRecord): Promise<CallbackMessage>
  /** The same, signed; `null`: there is nothing to tell at this status. */
  signed(task: TaskRecord, by: { readonly id: string; readonly signing: string }): CallbackMessage | null
  /** Before the first repetition; each further one waits four times as long. */
  readonly retryBaseMs?: number
  readonly pollMs?: number
  readonly timeoutMs?: number
  /** Instead of the system's, which is told apart by tests. */
  readonly lookup?: LookupFunction
}

/**
 * Tells whoever asked for it when the status of a task has changed: at least once each, the newest one first, beside all
 * other processes that do. What was under way when a process died is told again by another one, or after a restart.
 */
export class TaskCallbacks {
  readonly #management: Management
  readonly #settings: CallbackSettings
  readonly #closing = new AbortController()
  readonly #underWay = new Set<Promise<void>>()
  readonly #of = new Map<string, number>()
  #loop: Promise<void> = Promise.resolve()
  readonly #doze: Doze

  constructor(management: Management, settings: CallbackSettings) {
    this.#management = management
    this.#settings = settings
    this.#doze = new Doze(settings.pollMs ?? POLL_MS, this.#closing.signal)
  }

  start(): void {
    this.#loop = this.#run()
  }

  /** There is something to tell. */
  wake(): void {
    this.#doze.wake()
  }

  /** What is not told by then falls due again. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.wake()
    await this.#loop
    await Promise.all(this.#underWay)
  }

  async #run(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      const woken = this.#doze.woken
      const due = this.#underWay.size < AT_ONCE_MAX ? await this.#claim() : []
      for (const each of due) this.#begin(each)
      if (due.length === 0) await this.#doze.pause(woken)
    }
  }

  async #claim(): Promise<readonly DueCallback[]> {
    const { store, nowMs, log } = this.#management
    const busy = [...this.#of].flatMap(([principal, count]) => (count >= OF_ONE_MAX ? [principal] : []))
    const atMs = nowMs()
    try {
      return await store.taskCallbacks.claim({ nowMs: atMs, untilMs: atMs + HELD_MS }, OF_ONE_MAX, busy)
    } catch (error) {
      if (!isOfStore(error)) log.error('callbacks of tasks have met a bug', { error: error as Error })
      return []
    }
  }

  #begin(due: DueCallback): void {
    const { principal } = due
    this.#of.set(principal, (this.#of.get(principal) ?? 0) + 1)
    const telling: Promise<void> = this.#tell(due).finally(() => {
      this.#underWay.delete(telling)
      const left = this.#of.get(principal)! - 1
      if (left === 0) this.#of.delete(principal)
      else this.#of.set(principal, left)
      this.wake()
    })
    this.#underWay.add(telling)
  }

  async #tell(due: DueCallback): Promise<void> {
    const { store, log } = this.#management
    try {
      const task = await store.tasks.byId(due.taskId)
      if (task === null) return
      const told = await this.#post(due, task)
      if (!this.#closing.signal.aborted || told.told !== null) await store.taskCallbacks.done(due, told)
    } catch (error) {
      // It is held for a while, and falls due again.
      if (!isOfStore(error)) log.error('a callback of a task has met a bug', { error: error as Error })
    }
  }

  async #post(due: DueCallback, task: TaskRecord): Promise<CallbackTold> {
    const { allowPrivateWebhooks: allowPrivate, ownSignature, nowMs, log } = this.#management
    const { url } = due
    try {
      if (!allowPrivate && !url.startsWith('https:'))
        throw new FetchFault('address', 'it is not https://, which is needed by now')
      const message = await this.#message(due, task)
      if (message === null) return { told: task.status, error: null, nextAtMs: null }
      const { timeoutMs = TIMEOUT_MS, lookup } = this.#settings
      const place = { url, ca: null, allowPrivate, timeoutMs, ...(lookup === undefined ? {} : { lookup }) }
      const own = ownSignature.headersFor(url, message.headers, message.body)
      const headers = { ...message.headers, ...own }
      await guardedPost({ ...place, ...message, headers }, this.#closing.signal)
      return { told: task.status, error: null, nextAtMs: null }
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      const isOver = due.attempts + 1 >= ATTEMPTS_MAX || (error as Partial<FetchFault>).status === GONE
      // Of the URL its host: what is behind it is often as good as a password.
      const said = { task: task.id, host: new URL(url).host, reason: error.message }
      if (isOver) log.warn('a callback of a task is given up', said)
      return { told: null, error: error.message, nextAtMs: isOver ? null : nowMs() + this.#delayMs(due) }
    }
  }

  async #message({ taskId, id, sealed }: DueCallback, task: TaskRecord): Promise<CallbackMessage | null> {
    if (sealed === null) return this.#settings.message(task)
    const text = await this.#management.sealer.open(sealed, whatOf(taskId, id))
    const secret = JSON.parse(text.reveal()) as CallbackSecret
    const { signing } = secret
    if (signing !== undefined) return this.#settings.signed(task, { id, signing })
    const { headers, body } = await this.#settings.message(task)
    return { headers: { ...headers, ...proofOf(secret) }, body }
  }

  /** Longer each time, and not for all at the same moment. */
  #delayMs({ attempts }: DueCallback): number {
    const { retryBaseMs = RETRY_BASE_MS } = this.#settings
    return Math.round(retryBaseMs * 4 ** attempts * (0.75 + Math.random() / 2))
  }
}

function proofOf({ token, scheme, credentials }: CallbackSecret): Readonly<Record<string, string>> {
  return {
    ...(token !== null && { 'x-a2a-notification-token': token }),
    ...(scheme !== null && { authorization: credentials === null ? scheme : `${scheme} ${credentials}` }),
  }
}

/** What the secret of a callback is sealed as: see Sealer. */
export function whatOf(taskId: string, id: string): string {
  return `callback ${id} of task ${taskId}`
}

function isOfStore(error: unknown): boolean {
  return error instanceof Fault && error.code.startsWith('STORE_')
}

const AT_ONCE_MAX = 16
/** Whoever's server is slow does not hold up the others. */
const OF_ONE_MAX = 4
/** As Standard Webhooks and A2A (§13.2) have it. */
const TIMEOUT_MS = 10_000
/** A process that was killed is missed for so long. */
const HELD_MS = 30_000
const POLL_MS = 500
/** Some two minutes and a half after the first. */
const ATTEMPTS_MAX = 5
const RETRY_BASE_MS = 2_000
const GONE = 410
