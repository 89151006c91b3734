import type { Socket } from 'node:net'
import { type Dialer, failureOf } from './upstream-dial.ts'
import type { TargetHealth } from './upstream-health.ts'
import type { UpstreamFailure } from './upstream-stream.ts'

/**
 * Tries to connect to a target that failing requests took out, for upstreams without `health.path`. Without
 * traffic, nothing else would notice that the app listens again. A connection proves nothing if the app fails
 * in another way: such a target comes back when a request is answered.
 */
export class Reconnect {
  readonly #dialer: Dialer
  readonly #health: TargetHealth
  #timer: NodeJS.Timeout | null = null
  #socket: Socket | null = null
  #isClosed = false

  constructor(dialer: Dialer, health: TargetHealth) {
    this.#dialer = dialer
    this.#health = health
  }

  /** Called when the target is taken out. */
  start(): void {
    if (!this.#isClosed && this.#timer === null && this.#socket === null) this.#wait()
  }

  close(): void {
    this.#isClosed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#socket?.destroy()
    this.#socket = null
  }

  #wait(): void {
    // A request may have tried first and extended the pause.
    const delayMs = Math.max(DELAY_MS_MIN, this.#health.outUntilMs - performance.now())
    this.#timer = setTimeout(() => this.#look(), delayMs).unref()
  }

  #look(): void {
    this.#timer = null
    if (this.#health.isHealthy) return
    const isMeant = CONNECTING.has(this.#health.lastFailure ?? '')
    if (!isMeant || performance.now() < this.#health.outUntilMs) return this.#wait()
    const socket = this.#dialer.dial(null, () => this.#done(socket, null))
    this.#socket = socket
    socket.setTimeout(CONNECT_MS, () => this.#done(socket, 'connect-timeout'))
    socket.on('error', (error) => this.#done(socket, failureOf(error, true)))
    socket.unref()
  }

  #done(socket: Socket, failure: UpstreamFailure | null): void {
    if (this.#socket !== socket) return
    this.#socket = null
    socket.destroy()
    if (failure === null) return this.#health.succeeded()
    if (this.#health.isHealthy) return // a request was answered meanwhile
    if (failure !== 'overloaded') this.#health.failed(performance.now(), Math.random(), failure)
    this.#wait()
  }
}

/** Failures in which no connection was made. */
const CONNECTING: ReadonlySet<string> = new Set<UpstreamFailure>([
  'refused',
  'unreachable',
  'tls',
  'connect-timeout',
])
const CONNECT_MS = 5_000
const DELAY_MS_MIN = 100
