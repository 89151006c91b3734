import type { Socket } from 'node:net'
import { STATUS_CODES } from '../../shared/node-http.ts'

/** Why a connection ends, where an answer can still be understood. */
export function lastWords(status: number): string {
  const body = `${STATUS_CODES[status]}\n`
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: text/plain\r\n`
  return `${head}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`
}

/**
 * Ends our side, and goes on reading for a moment what the client is still sending: to close at once would be to reset, and
 * a reset overtakes the answer.
 */
export function closeSoftly(stream: Socket): void {
  stream.end()
  stream.resume()
  const timer = setTimeout(() => stream.destroy(), LINGER_MS)
  stream.once('close', () => clearTimeout(timer))
}

/** How long a client that is still sending may take to read why it should not. */
const LINGER_MS = 2000
