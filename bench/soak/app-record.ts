import type { EventEmitter } from 'node:events'
import type { AppClose, Seen } from './messages.ts'

/** What the app knows of the requests that came within the last minutes, and of the connections they came on. */
export class AppRecord {
  #recent = new Map<string, Coming>()
  #before = new Map<string, Coming>()
  readonly #connections = new WeakMap<EventEmitter, Connection>()

  /** How often it has come by now. `connection`: its socket, or its session. */
  came(id: string, connection: EventEmitter): number {
    const times = this.seen(id).times + 1
    this.#recent.set(id, { times, isAnswered: false, connection: this.#of(connection) })
    if (this.#recent.size >= RECENT_MAX) {
      this.#before = this.#recent
      this.#recent = new Map()
    }
    return times
  }

  /** All of the answer has been written. */
  answered(id: string): void {
    const coming = this.#coming(id)
    if (coming !== undefined) coming.isAnswered = true
  }

  /** The app closes the connection now; the first reason is the one that holds. */
  closes(connection: EventEmitter, close: AppClose): void {
    this.#of(connection).close ??= close
  }

  seen(id: string): Seen {
    const { times = 0, isAnswered = false, connection = null } = this.#coming(id) ?? {}
    return { times, isAnswered, close: connection?.close ?? null, ended: connection?.ended ?? null }
  }

  #coming(id: string): Coming | undefined {
    return this.#recent.get(id) ?? this.#before.get(id)
  }

  #of(emitter: EventEmitter): Connection {
    const known = this.#connections.get(emitter)
    if (known !== undefined) return known
    const connection: Connection = { close: null, ended: null }
    this.#connections.set(emitter, connection)
    const note = (what: string) => {
      connection.ended ??= what
    }
    emitter.once('end', () => note('ended by the other side'))
    emitter.once('goaway', () => note('left by the other side'))
    emitter.once('error', (error: NodeJS.ErrnoException) => note(error.code ?? error.message))
    emitter.once('close', () => note('closed'))
    return connection
  }
}

/** The last time a request came. */
interface Coming {
  readonly times: number
  isAnswered: boolean
  readonly connection: Connection
}

interface Connection {
  close: AppClose | null
  /** What was seen first of its end. */
  ended: string | null
}

/** Some minutes, and as many records as memory bears. */
const RECENT_MAX = 100_000
