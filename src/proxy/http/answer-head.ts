import { areFieldLines, fieldLines, isFieldValue } from '../connection/field-syntax.ts'
import { STATUS_CODES } from '../../shared/node-http.ts'

/** What stands in the head of an answer beside what the app says. */
export interface AnswerFraming {
  readonly isChunked: boolean
  /** For how long the connection waits for another request, in seconds: 0 is not said. `null`: it ends. */
  readonly keptS: number | null
}

/**
 * The head of an answer of HTTP/1.1, to the byte as node:http writes it: nobody is to tell which of the two has answered.
 * `null` for what cannot be written without saying something else.
 */
export function answerHead(
  status: number,
  reason: string | null,
  headers: readonly string[],
  { isChunked, keptS }: AnswerFraming,
): string | null {
  const words = reason ?? STATUS_CODES[status] ?? 'unknown'
  const lines = fieldLines(headers)
  if (!areFieldLines(lines, headers.length / 2) || !isFieldValue(words)) return null
  let text = 'HTTP/1.1 ' + status + ' ' + words + '\r\n' + lines
  if (!hasDate(headers)) text += 'Date: ' + httpDate() + '\r\n'
  if (keptS === null) text += 'Connection: close\r\n'
  else if (keptS === 0) text += 'Connection: keep-alive\r\n'
  else text += 'Connection: keep-alive\r\nKeep-Alive: timeout=' + keptS + '\r\n'
  return isChunked ? text + 'Transfer-Encoding: chunked\r\n\r\n' : text + '\r\n'
}

/** The head of an interim answer; `null` as above. */
export function interimHead(status: number, headers: readonly string[]): string | null {
  const lines = fieldLines(headers)
  if (!areFieldLines(lines, headers.length / 2)) return null
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n${lines}\r\n`
}

function hasDate(headers: readonly string[]): boolean {
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!
    if (name.length === 4 && (name === 'Date' || name.toLowerCase() === 'date')) return true
  }
  return false
}

/** Made once a second, and only while it is asked for. */
function httpDate(): string {
  if (date !== '') return date
  const now = new Date()
  date = now.toUTCString()
  setTimeout(() => {
    date = ''
  }, 1000 - now.getMilliseconds()).unref()
  return date
}

let date = ''
