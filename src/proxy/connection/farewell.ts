import type { Socket } from 'node:net'
import { STATUS_CODES } from '../../shared/node-http.ts'

/** A complete error answer for a connection that ends while the client can still read one. */
export function lastWords(status: number): string {
  const body = `${STATUS_CODES[status]}\n`
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: text/plain\r\n`
  return `${head}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`
}

/**
 * Ends our side and reads on for a moment what the client is still sending. Closing at once would send a
 * reset, and a reset overtakes the answer.
 */
export function closeSoftly(stream: Socket): void {
  stream.end()
  stream.resume()
  const timer = setTimeout(() => stream.destroy(), LINGER_MS)
  stream.on('close', () => clearTimeout(timer))
}

/** How long a client that is still sending may take to read the answer. */
const LINGER_MS = 2000
