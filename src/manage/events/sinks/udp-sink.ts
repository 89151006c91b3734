import { createSocket, type Socket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { Fault } from '../../../shared/fault.ts'
import type { EventRecord } from '../../../store/events/events.ts'
import type { LineOf, Sink } from './sink.ts'
import { CONFIRM_MS, type SyslogPlace } from './syslog-place.ts'
import { syslogMessage } from './syslog-message.ts'

/** Syslog over UDP (RFC 5426). A loss is only noticed if the receiver's host reports a closed port. */
export class UdpSink implements Sink {
  readonly confirmMs = CONFIRM_MS
  readonly #place: SyslogPlace
  readonly #lineOf: LineOf
  #socket: Socket | null = null
  #broken: Error | null = null

  constructor(place: SyslogPlace, lineOf: LineOf) {
    this.#place = place
    this.#lineOf = lineOf
  }

  async write(events: readonly EventRecord[]): Promise<void> {
    this.#socket ??= await this.#connected()
    try {
      for (const event of events) await this.#send(datagramOf(syslogMessage(event, this.#lineOf)))
    } catch (error) {
      await this.close()
      throw error
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
    socket?.close()
  }

  async #send(message: Buffer): Promise<void> {
    const socket = this.#socket
    // The socket was closed after an error, such as a closed port.
    if (socket === null) throw this.broken() ?? new Fault('SINK_AWAY', 'no receiver listens on this port')
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    socket.send(message, (error) => (error ? reject(error) : resolve()))
    await promise
  }

  async #connected(): Promise<Socket> {
    const { host, port } = this.#place
    const { address, family } = await lookup(host)
    const socket = createSocket(family === 6 ? 'udp6' : 'udp4').unref()
    socket.connect(port, address)
    await once(socket, 'connect')
    socket.on('error', (error) => {
      if (this.#socket !== socket) return
      this.#broken = error
      void this.close()
    })
    return socket
  }
}

/** Truncates a message that is too long, between two characters. */
export function datagramOf(message: Buffer): Buffer {
  if (message.length <= BYTES_MAX) return message
  let end = BYTES_MAX
  while ((message[end]! & 0xc0) === 0x80) end--
  return message.subarray(0, end)
}

/** The limit of a datagram. Longer messages are truncated. */
const BYTES_MAX = 65_000
