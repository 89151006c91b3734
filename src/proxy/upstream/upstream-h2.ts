import type { Beat, Swept } from '../connection/beat.ts'
import type { Dialer } from './upstream-dial.ts'
import { H2Connection, type H2ConnectionOwner } from './upstream-h2-connection.ts'
import type { Pool, PoolCounters, PoolCounts, PoolSettings } from './upstream-pool.ts'
import { requestList } from './upstream-request.ts'
import type { Receiver, UpstreamFailure, UpstreamStream } from './upstream-stream.ts'
import { WaitingLine } from './waiting-line.ts'

/** HTTP/2 to one target: a few connections, each with as many streams as the upstream allows. */
export class H2Pool implements Pool, Swept, H2ConnectionOwner {
  readonly dialer: Dialer
  readonly beat: Beat
  readonly times: PoolSettings
  readonly #ownHost: string | null
  readonly #counters: PoolCounters
  readonly #connections = new Set<H2Connection>()
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
    this.#ownHost = ownHost
    this.#counters = counters
  }

  get counts(): PoolCounts {
    let idle = 0
    for (const connection of this.#connections) if (connection.streamCount === 0) idle++
    return { connections: this.#connections.size, idle, waiting: this.#line.length }
  }

  get isSaturated(): boolean {
    return this.#line.first !== null
  }

  /** `isFresh` is not needed here: a failed connection takes no more requests. */
  open(receiver: Receiver): UpstreamStream | null {
    const connection = this.#line.first === null ? this.#roomy(receiver.request.bodyLength !== 0) : null
    return connection === null ? this.#wait(receiver) : this.#carry(connection, receiver)
  }

  probe(receiver: Receiver): UpstreamStream | null {
    for (const connection of this.#connections) {
      if (connection.isOpen) return this.#carry(connection, receiver)
    }
    return this.#wait(receiver)
  }

  drain(): void {
    this.#isDraining = true
    for (const connection of this.#connections) if (connection.streamCount === 0) connection.close()
  }

  close(): void {
    this.#isDraining = true
    this.#line.fail('closing')
    for (const connection of this.#connections) connection.abandon()
  }

  sweep(nowMs: number): void {
    for (const connection of this.#connections) connection.sweep(nowMs)
    this.#line.sweep(nowMs)
  }

  /** The connection has room for requests. If it does not suffice, another one is opened. */
  ready(connection: H2Connection): void {
    for (let waiter = this.#line.first; waiter !== null; waiter = this.#line.first) {
      if (!this.#hasRoom(connection)) return this.#connect()
      waiter.cancel()
      waiter.becomes(this.#carry(connection, waiter.receiver))
    }
    if (this.#isDraining && connection.streamCount === 0) connection.close()
  }

  /**
   * Called once for each connection. `failure` is set if it never opened. Then the waiting requests fail if
   * there is no other connection.
   */
  closed(connection: H2Connection, failure: UpstreamFailure | null): void {
    this.#connections.delete(connection)
    if (this.#connections.size === 0) this.beat.leave(this)
    if (failure === null) {
      if (this.#line.first !== null) this.#connect()
    } else if (this.#connections.size === 0) this.#line.fail(failure)
  }

  #wait(receiver: Receiver): UpstreamStream | null {
    this.#counters.waits++
    const deadlineMs = this.beat.after(this.times.connectTimeoutMs)
    const waiter = this.#line.join(receiver, deadlineMs, false)
    if (waiter !== null) this.#connect()
    return waiter
  }

  /** Opens one connection at a time, because one may have room for all waiting requests. */
  #connect(): void {
    let staying = 0
    for (const connection of this.#connections) {
      if (connection.isConnecting) return
      if (connection.isOpen) staying++
    }
    if (staying >= CONNECTIONS_MAX || this.#streamCount() >= this.times.connectionsMax) return
    this.beat.join(this)
    this.#counters.connectionsOpened++
    this.#connections.add(new H2Connection(this, this.beat.after(this.times.connectTimeoutMs)))
  }

  #carry(connection: H2Connection, receiver: Receiver): UpstreamStream {
    const { request } = receiver
    const { authority, tls } = this.dialer.address
    if (connection.isReused) this.#counters.connectionsReused++
    return connection.carry(
      receiver,
      requestList(request, tls === null ? 'http' : 'https', authority, this.#ownHost),
    )
  }

  /**
   * Picks a connection with room. An upload avoids congested connections. If all are congested, another
   * connection is opened.
   */
  #roomy(isUpload: boolean): H2Connection | null {
    let least: H2Connection | null = null
    for (const connection of this.#connections) {
      if (!this.#hasRoom(connection)) continue
      if (!isUpload || !connection.isCongested) return connection
      if (least === null || connection.streamCount < least.streamCount) least = connection
    }
    if (least !== null) this.#connect()
    return least
  }

  #hasRoom(connection: H2Connection): boolean {
    return connection.hasRoom && this.#streamCount() < this.times.connectionsMax
  }

  #streamCount(): number {
    let count = 0
    for (const connection of this.#connections) count += connection.streamCount
    return count
  }
}

/**
 * Each with 100 streams, not counting those that are closing. More than one, because a lost packet delays all
 * streams of a connection.
 */
const CONNECTIONS_MAX = 8
