import type { Socket } from 'node:net'
import { fieldLines } from '../connection/field-syntax.ts'
import type { ClientConnection } from '../connection/connection.ts'
import { cutOff } from '../connection/cut-off.ts'
import type { ReceivedHead } from '../connection/received-head.ts'
import type { Upgrade } from '../connection/upgrade.ts'
import { STATUS_CODES } from '../../shared/node-http.ts'

/** An HTTP/1.1 upgrade. HTTP ends here: what is sent is written to the socket. */
export class Http1Upgrade implements Upgrade {
  readonly connection: ClientConnection
  readonly requestHead: ReceivedHead
  readonly authority: string | null
  readonly protocol: string
  readonly isKeyless = false
  /** The bytes that the client sent after its request. */
  readonly #first: Buffer

  constructor(
    connection: ClientConnection,
    requestHead: ReceivedHead,
    authority: string | null,
    protocol: string,
    first: Buffer,
  ) {
    this.connection = connection
    this.requestHead = requestHead
    this.authority = authority
    this.protocol = protocol
    this.#first = first
  }

  get stream(): Socket {
    return this.connection.stream
  }

  agree(headers: readonly string[]): void {
    // Not earlier: a socket with unread data does not report that the client has closed its side.
    if (this.#first.length > 0) this.stream.unshift(this.#first)
    this.stream.write(`HTTP/1.1 101 ${STATUS_CODES[101]}\r\n${fieldLines(headers)}\r\n`, 'latin1')
  }

  /** The length of the body may be unknown, so its end is the end of the connection. */
  answer(status: number, headers: readonly string[], reason: string | null): void {
    this.connection.stage = 'h1'
    let lines = `HTTP/1.1 ${status} ${reason ?? STATUS_CODES[status] ?? ''}\r\n`
    for (let i = 0; i < headers.length; i += 2)
      if (!FRAMING.test(headers[i]!)) lines += `${headers[i]}: ${headers[i + 1]}\r\n`
    this.stream.write(`${lines}Connection: close\r\n\r\n`, 'latin1')
  }

  /** Ends our side and reads on for a moment: a reset would overtake the answer. */
  finish(): void {
    const { stream } = this
    stream.end(() => {
      const timer = setTimeout(() => stream.destroy(), LINGER_MS)
      stream.once('close', () => clearTimeout(timer))
    })
    stream.once('end', () => stream.destroySoon()).resume()
  }

  cutOff(): void {
    cutOff(this.stream)
  }
}

const FRAMING = /^(?:connection|keep-alive|transfer-encoding|upgrade)$/i
/** How long a client that has its answer may take to close the connection. */
const LINGER_MS = 2000
