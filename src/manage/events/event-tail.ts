import type { EventRecord } from '../../store/events/events.ts'
import type { Store } from '../../store/store.ts'
import { Doze } from '../http/doze.ts'
import type { EventLog } from './event-log.ts'

/** Some events, and the position after them. The position can advance without any event. */
interface FollowedEvents {
  readonly events: readonly EventRecord[]
  readonly position: number
}

/**
 * The newest events, shared by all followers in this process: one query serves every follower that is up to
 * date, and without followers there is no query. A follower that is behind reads from the database at its own
 * pace.
 */
export class EventTail {
  readonly #store: Pick<Store, 'events'>
  readonly #closing = new AbortController()
  readonly #doze: Doze
  readonly #ignoreAdded: () => void
  readonly #waiting = new Set<() => void>()
  /** Aborted when the database is restored from a backup. */
  #era = new AbortController()
  #followers = 0
  #isLooking = false
  /** All events with numbers greater than `from`, up to `to`. `to` is `null` until it is known. */
  #newest: readonly EventRecord[] = []
  #from = 0
  #to: number | null = null

  constructor(store: Pick<Store, 'events'>, log: Pick<EventLog, 'onAdded'>, pollMs = POLL_MS) {
    this.#store = store
    this.#doze = new Doze(pollMs, this.#closing.signal)
    this.#ignoreAdded = log.onAdded(() => this.#doze.wake())
  }

  get followers(): number {
    return this.#followers
  }

  /**
   * Yields the events after `position`, each once and in order, then new ones, until `stop` or until a
   * restore makes the numbers invalid.
   */
  async *follow(position: number, stop: AbortSignal): AsyncGenerator<FollowedEvents, void, undefined> {
    this.#followers++
    if (!this.#isLooking) void this.#look()
    const end = AbortSignal.any([stop, this.#era.signal])
    try {
      for (let at = position; !end.aborted; ) {
        const some = await this.#behind(at, end)
        if (some.position > at) yield some
        at = some.position
      }
    } finally {
      this.#followers--
    }
  }

  /** Ends all followers after a backup was restored: their positions are no longer valid. */
  restored(): void {
    this.#era.abort()
    this.#era = new AbortController()
    this.#forget()
  }

  close(): void {
    this.#ignoreAdded()
    this.#closing.abort()
    this.#era.abort()
    this.#doze.wake()
  }

  /** Returns no events and the same position if the caller has to ask again. */
  async #behind(position: number, stop: AbortSignal): Promise<FollowedEvents> {
    if (this.#to !== null && position >= this.#to) {
      await this.#change(stop)
      return { events: [], position }
    }
    if (this.#to === null || position < this.#from) return this.#stored(position, stop)
    const first = this.#newest.findIndex(({ number }) => number > position)
    const events = first === -1 ? [] : this.#newest.slice(first, first + AT_ONCE)
    return { events, position: events.at(-1)?.number ?? this.#to }
  }

  async #stored(position: number, stop: AbortSignal): Promise<FollowedEvents> {
    const from = this.#from
    try {
      const events = await this.#store.events.after(position, AT_ONCE)
      const last = events.at(-1)
      if (last !== undefined) return { events, position: last.number }
      // No event follows `position`, so none lies between it and `from`, which was read before the query.
      if (position < from) return { events, position: from }
    } catch {
      // While the database is unavailable, no events are added. The error is reported elsewhere.
    }
    await this.#change(stop)
    return { events: [], position }
  }

  async #look(): Promise<void> {
    this.#isLooking = true
    while (this.#followers > 0 && !this.#closing.signal.aborted) {
      const woken = this.#doze.woken
      const isMore = await this.#readOn().catch(() => false)
      this.#tell()
      if (!isMore) await this.#doze.pause(woken)
    }
    this.#isLooking = false
    this.#forget()
  }

  #forget(): void {
    this.#newest = []
    this.#from = 0
    this.#to = null
  }

  /** Returns whether there may be more events to read. */
  async #readOn(): Promise<boolean> {
    const era = this.#era
    const to = this.#to
    if (to === null) {
      const last = await this.#store.events.last()
      if (era !== this.#era) return true
      this.#from = last
      this.#to = last
      return true
    }
    const some = await this.#store.events.after(to, AT_ONCE)
    if (era !== this.#era) return true
    if (some.length === 0) return false
    const all = [...this.#newest, ...some]
    const first = firstKept(all)
    this.#to = some.at(-1)!.number
    if (first > 0) this.#from = all[first - 1]!.number
    this.#newest = all.slice(first)
    return some.length === AT_ONCE
  }

  #tell(): void {
    for (const resolve of this.#waiting) resolve()
  }

  /** Resolves after the next read, or at `stop`. */
  #change(stop: AbortSignal): Promise<void> {
    if (stop.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const end = () => {
        this.#waiting.delete(end)
        stop.removeEventListener('abort', end)
        resolve()
      }
      stop.addEventListener('abort', end)
      this.#waiting.add(end)
    })
  }
}

/** The index of the first event to keep. Long events reduce the number that is kept. */
function firstKept(events: readonly EventRecord[]): number {
  let length = 0
  for (let at = events.length - 1; at >= 0; at--) {
    length += events[at]!.data.length
    if (events.length - at > KEPT_MAX || length > KEPT_LENGTH_MAX) return at + 1
  }
  return 0
}

/** For events of other processes; an event of this process wakes the tail at once. */
const POLL_MS = 500
const KEPT_MAX = 1_000
/** In characters. */
const KEPT_LENGTH_MAX = 4_000_000
const AT_ONCE = 100
