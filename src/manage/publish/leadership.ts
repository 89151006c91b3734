import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import type { Metrics } from '../../shared/metrics.ts'

/** A lock that only one process can hold. */
interface Lock {
  take(): Promise<boolean>
  isHeld(): Promise<boolean>
  release(): Promise<void>
}

/**
 * Decides which of several management processes does the work that must be done once. A leader that cannot
 * verify its lock stops leading. Work that it had already started is refused elsewhere, see `confirm`.
 */
export class Leadership {
  readonly #lock: Lock
  readonly #log: Log
  readonly #beatMs: number
  readonly #stop = new AbortController()
  #isLeader = false
  #changes = 0
  #listener: (isLeader: boolean) => void = () => undefined
  #timer: NodeJS.Timeout | null = null
  #beating: Promise<void> | null = null
  #failure = ''

  constructor(lock: Lock, log: Log, beatMs = BEAT_MS) {
    this.#lock = lock
    this.#log = log
    this.#beatMs = beatMs
  }

  get isLeader(): boolean {
    return this.#isLeader
  }

  /** Sets the only listener. */
  onChange(listener: (isLeader: boolean) => void): void {
    this.#listener = listener
  }

  start(): void {
    this.#beating = this.#beat().finally(() => {
      if (this.#stop.signal.aborted) return
      const delayMs = this.#beatMs * (0.75 + 0.5 * Math.random())
      this.#timer = setTimeout(() => this.start(), delayMs).unref()
    })
  }

  /** Asks the database whether this process still leads. Call it before irreversible work. */
  async confirm(): Promise<boolean> {
    if (!this.#isLeader) return false
    if (await this.#lock.isHeld()) return true
    this.#set(false)
    return false
  }

  /** Releases the lock, so that another process can lead at once. */
  async close(): Promise<void> {
    this.#stop.abort()
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#beating
    this.#isLeader = false
    await this.#lock.release()
  }

  addMetrics(metrics: Metrics): void {
    metrics.gauge('leader', '1 while this process is the leader of the managers.', 'first', () => [
      { labels: {}, value: Number(this.#isLeader) },
    ])
    metrics.counter(
      'leader_changes_total',
      'How often this process became or stopped being the leader.',
      () => [{ labels: {}, value: this.#changes }],
    )
  }

  async #beat(): Promise<void> {
    try {
      const isLeader = this.#isLeader ? await this.#lock.isHeld() : await this.#taken()
      this.#failure = ''
      if (!this.#stop.signal.aborted) this.#set(isLeader)
    } catch (error) {
      const { message } = error as Error
      if (message !== this.#failure)
        this.#log.warn('it cannot be found out who leads; it is tried again', { error: error as Error })
      this.#failure = message
      this.#set(false)
    }
  }

  /**
   * If the lock is gone at once, it was taken through a pooler that keeps no sessions. No process holds it.
   */
  async #taken(): Promise<boolean> {
    if (!(await this.#lock.take())) return false
    if (await this.#lock.isHeld()) return true
    throw new Fault(
      'STORE_POOLED',
      'the lock of who leads was gone in the same moment: store.url has to lead to PostgreSQL itself, or to a pooler that keeps sessions',
    )
  }

  #set(isLeader: boolean): void {
    if (isLeader === this.#isLeader) return
    this.#isLeader = isLeader
    this.#changes++
    this.#log.info(isLeader ? 'this process leads' : 'this process does not lead any more')
    this.#listener(isLeader)
  }
}

const BEAT_MS = 1_000
