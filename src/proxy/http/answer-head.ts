import { areFieldLines, fieldLines, isFieldValue } from '../connection/field-syntax.ts'
import { STATUS_CODES } from '../../shared/node-http.ts'

/** The parts of an answer's head that do not come from the app. */
export interface AnswerFraming {
  readonly isChunked: boolean
  /**
   * How long the connection waits for another request, in seconds. 0: not announced. `null`: the connection
   * closes.
   */
  readonly keptS: number | null
}

/**
 * The head of an HTTP/1.1 answer, identical to that of node:http, so that clients cannot tell which of the
 * two answered. `null` if a value would change the meaning of the head.
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

/** Formatted once a second, and only while it is needed. */
export function httpDate(): string {
  if (date !== '') return date
  const now = new Date()
  date = now.toUTCString()
  setTimeout(() => {
    date = ''
  }, 1000 - now.getMilliseconds()).unref()
  return date
}

let date = ''
