import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { Fault } from '../../../shared/fault.ts'
import type { EventRecord } from '../../../store/events/events.ts'
import type { LineOf, Sink } from './sink.ts'
import { CONFIRM_MS, type SyslogPlace, TIMEOUT_MS } from './syslog-place.ts'
import { framed, syslogMessage } from './syslog-message.ts'

/** Syslog over TCP (RFC 6587, octet counting) and TLS (RFC 5425) with certificate verification. */
export class SyslogStreamSink implements Sink {
  readonly confirmMs = CONFIRM_MS
  readonly #place: SyslogPlace
  readonly #lineOf: LineOf
  #socket: Socket | null = null
  #broken: Error | null = null

  constructor(place: SyslogPlace, lineOf: LineOf) {
    this.#place = place
    this.#lineOf = lineOf
  }

  /** Resolves when the operating system has accepted the data: syslog has no acknowledgements. */
  async write(events: readonly EventRecord[]): Promise<void> {
    const bytes = Buffer.concat(events.map((event) => framed(syslogMessage(event, this.#lineOf))))
    this.#socket ??= await this.#connected()
    const socket = this.#socket
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const late = setTimeout(() => socket.destroy(away('takes nothing')), TIMEOUT_MS).unref()
    // A socket that is already closed does not call the write callback.
    const closed = () => reject(this.#broken ?? away('has closed the connection'))
    socket.once('close', closed)
    socket.write(bytes, (error) => (error ? reject(error) : resolve()))
    try {
      await promise
    } catch (error) {
      await this.close()
      throw error
    } finally {
      clearTimeout(late)
      socket.off('close', closed)
    }
  }

  broken(): Error | null {
    const broken = this.#broken
    this.#broken = null
    return broken
  }

  async close(): Promise<void> {
    const socket = this.#socket
    this.#socket = null
    socket?.destroy()
  }

  async #connected(): Promise<Socket> {
    const { protocol, host, port, ca } = this.#place
    const trusted = ca === null ? {} : { ca }
    const socket =
      protocol === 'tls' ? connectTls({ host, port, ...trusted, ...TLS }) : connect({ host, port })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const late = setTimeout(() => socket.destroy(away('does not answer')), TIMEOUT_MS).unref()
    let why: Error | null = null
    socket.once(protocol === 'tls' ? 'secureConnect' : 'connect', resolve)
    socket.on('error', (error) => {
      why = error
    })
    socket.once('close', () => {
      const error = why ?? away('has closed the connection')
      reject(error)
      if (this.#socket !== socket) return
      this.#broken = error
      this.#socket = null
    })
    try {
      await promise
    } finally {
      clearTimeout(late)
    }
    // Input is ignored. A receiver that ends the connection closes it.
    socket.resume().setKeepAlive(true, KEEP_ALIVE_MS).unref()
    return socket
  }
}

function away(what: string): Fault {
  return new Fault('SINK_AWAY', `the receiver ${what}`)
}

const TLS = { minVersion: 'TLSv1.2', rejectUnauthorized: true } as const
const KEEP_ALIVE_MS = 15_000
