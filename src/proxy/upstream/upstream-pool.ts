import type { Beat, Swept } from '../connection/beat.ts'
import type { Dialer } from './upstream-dial.ts'
import { H1Connection, type H1Owner, type UpstreamTimes } from './upstream-h1.ts'
import type { Receiver, UpstreamStream } from './upstream-stream.ts'
import { WaitingLine } from './waiting-line.ts'

export interface PoolSettings extends UpstreamTimes {
  readonly connectionsMax: number
  readonly connectionsIdleMax: number
}

/** The connections to one target. */
export interface PoolCounts {
  readonly connections: number
  readonly idle: number
  readonly waiting: number
}

/** Event counters for the metrics. */
export interface PoolCounters {
  connectionsOpened: number
  connectionsReused: number
  waits: number
}

/** All connections to one target, HTTP/1 or HTTP/2. */
export interface Pool {
  readonly counts: PoolCounts
  /** Whether the next request would have to wait. */
  readonly isSaturated: boolean
  /**
   * Sends the request as soon as possible. `null` if too many are waiting. `isFresh`: on a new connection.
   */
  open(receiver: Receiver, isFresh: boolean): UpstreamStream | null
  /**
   * Sends a health check: over HTTP/1 on a new connection beyond all limits, over HTTP/2 on an open one if
   * possible.
   */
  probe(receiver: Receiver): UpstreamStream | null
  /** From here on, connections close when they become idle. */
  drain(): void
  /** Closes everything. Current requests fail. */
  close(): void
}

/** HTTP/1.1. Reuses the most recently used connection, so that surplus ones become idle and close. */
export class H1Pool implements Pool, H1Owner, Swept {
  readonly dialer: Dialer
  readonly beat: Beat
  readonly times: PoolSettings
  readonly ownHost: string | null
  readonly #counters: PoolCounters
  readonly #open = new Set<H1Connection>()
  readonly #idle: H1Connection[] = []
  readonly #line = new WaitingLine()
  #isDraining = false

  constructor(
    dialer: Dialer,
    beat: Beat,
    settings: PoolSettings,
    ownHost: string | null,
    counters: PoolCounters,
  ) {
    this.dialer = dialer
    this.beat = beat
    this.times = settings
    this.ownHost = ownHost
    this.#counters = counters
  }

  get counts(): PoolCounts {
    return { connections: this.#open.size, idle: this.#idle.length, waiting: this.#line.length }
  }

  get isSaturated(): boolean {
    return this.#idle.length === 0 && this.#open.size >= this.times.connectionsMax
  }

  open(receiver: Receiver, isFresh: boolean): UpstreamStream | null {
    if (!isFresh) {
      const idle = this.#takeIdle()
      if (idle !== null) return this.#reuse(idle, receiver)
    } else if (this.#open.size >= this.times.connectionsMax) {
      this.#idle.pop()?.cancel()
    }
    this.beat.join(this)
    const deadlineMs = this.beat.after(this.times.connectTimeoutMs)
    if (this.#open.size < this.times.connectionsMax) return this.#connect(receiver, deadlineMs)
    this.#counters.waits++
    return this.#line.join(receiver, deadlineMs, isFresh)
  }

  probe(receiver: Receiver): UpstreamStream {
    this.beat.join(this)
    return this.#connect(receiver, this.beat.after(this.times.connectTimeoutMs))
  }

  released(connection: H1Connection): void {
    const waiter = this.#line.first
    if (waiter !== null && !waiter.isFresh) {
      waiter.cancel()
      this.#reuse(connection, waiter.receiver)
      return
    }
    // If a request waits for a new connection, this one closes to make room.
    const isKept = waiter === null && !this.#isDraining && this.#idle.length < this.times.connectionsIdleMax
    if (isKept) this.#idle.push(connection)
    else connection.cancel()
  }

  closed(connection: H1Connection): void {
    this.#open.delete(connection)
    const at = this.#idle.indexOf(connection)
    if (at !== -1) this.#idle.splice(at, 1)
    const waiter = this.#open.size < this.times.connectionsMax ? this.#line.first : null
    waiter?.cancel()
    if (waiter !== null) waiter.becomes(this.#connect(waiter.receiver, waiter.deadlineMs))
    else if (this.#open.size === 0) this.beat.leave(this)
  }

  sweep(nowMs: number): void {
    for (const connection of this.#open) connection.sweep(nowMs)
    this.#line.sweep(nowMs)
  }

  drain(): void {
    this.#isDraining = true
    for (const connection of this.#idle.slice()) connection.cancel()
  }

  close(): void {
    this.drain()
    this.#line.fail('closing')
    for (const connection of this.#open) connection.abandon()
  }

  #takeIdle(): H1Connection | null {
    for (let connection = this.#idle.pop(); connection !== undefined; connection = this.#idle.pop()) {
      if (connection.isIdle) return connection
      connection.cancel()
    }
    return null
  }

  #reuse(connection: H1Connection, receiver: Receiver): UpstreamStream {
    this.#counters.connectionsReused++
    connection.carry(receiver)
    return connection
  }

  #connect(receiver: Receiver, deadlineMs: number): UpstreamStream {
    this.#counters.connectionsOpened++
    const connection = new H1Connection(this, receiver, deadlineMs)
    this.#open.add(connection)
    return connection
  }
}
