import type { LookupFunction } from 'node:net'
import { Fault } from '../../shared/fault.ts'
import { FetchFault } from '../../identity/fetch/guarded-get.ts'
import { guardedPost } from '../../identity/fetch/guarded-post.ts'
import type { CallbackTold, DueCallback } from '../../store/work/task-callbacks.ts'
import type { TaskRecord } from '../../store/work/task-record.ts'
import { Doze } from '../http/doze.ts'
import type { JobsContext } from './context.ts'

/** Proves to a callback that the message comes from this installation. */
export interface CallbackSecret {
  readonly token: string | null
  /** For the `Authorization` header: `Bearer`, for example, and the credentials after it. */
  readonly scheme: string | null
  readonly credentials: string | null
  /** If set, messages are signed with it as in Standard Webhooks; otherwise they have the format of A2A. */
  readonly signing?: string | undefined
}

export interface CallbackMessage {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface CallbackSettings {
  message(task: TaskRecord): Promise<CallbackMessage>
  /** The signed message; `null`: this status is not reported. */
  signed(task: TaskRecord, by: { readonly id: string; readonly signing: string }): CallbackMessage | null
  /** The delay before the first retry. It quadruples with each retry. */
  readonly retryBaseMs?: number
  readonly pollMs?: number
  readonly timeoutMs?: number
  /** Replaces the system's lookup in tests. */
  readonly lookup?: LookupFunction
}

type CallbackContext = Omit<JobsContext, 'callbacks' | 'snapshot'>

/**
 * Reports status changes of tasks to their callbacks, at least once each and the newest first, in parallel
 * with other processes. If a process dies, another one repeats its pending callbacks, or the same one after a
 * restart.
 */
export class TaskCallbacks {
  readonly #management: CallbackContext
  readonly #settings: CallbackSettings
  readonly #closing = new AbortController()
  readonly #underWay = new Set<Promise<void>>()
  readonly #of = new Map<string, number>()
  #loop: Promise<void> = Promise.resolve()
  readonly #doze: Doze

  constructor(management: CallbackContext, settings: CallbackSettings) {
    this.#management = management
    this.#settings = settings
    this.#doze = new Doze(settings.pollMs ?? POLL_MS, this.#closing.signal)
  }

  start(): void {
    this.#loop = this.#run()
  }

  /** Call it if there may be something to report. */
  wake(): void {
    this.#doze.wake()
  }

  /** Callbacks that were not sent by then fall due again. */
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
      // The callback stays claimed for a while and then falls due again.
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
      // Logs only the host of the URL: its path is often as good as a password.
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

  /** Grows exponentially, with jitter so that retries do not happen at the same moment. */
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

/** The context under which the secret of a callback is sealed: see Sealer. */
export function whatOf(taskId: string, id: string): string {
  return `callback ${id} of task ${taskId}`
}

function isOfStore(error: unknown): boolean {
  return error instanceof Fault && error.code.startsWith('STORE_')
}

const AT_ONCE_MAX = 16
/** Per principal, so that a slow server does not delay the callbacks of others. */
const OF_ONE_MAX = 4
/** As recommended by Standard Webhooks and A2A (§13.2). */
const TIMEOUT_MS = 10_000
/** How long it takes until another process takes over from one that was killed. */
const HELD_MS = 30_000
const POLL_MS = 500
/** The last attempt is about two and a half minutes after the first. */
const ATTEMPTS_MAX = 5
const RETRY_BASE_MS = 2_000
const GONE = 410
