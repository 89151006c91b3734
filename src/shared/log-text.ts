import { styleText } from 'node:util'

/** Formats a JSON log line for people: time, level, message, then `name=value`. */
export function logText(line: string, hasColour = wantsColour()): string {
  let entry: Record<string, unknown>
  try {
    entry = JSON.parse(line)
  } catch {
    return line
  }
  const { level, time, message, pid: _pid, ...fields } = entry
  const words = Object.entries(fields).map(([name, value]) => `${name}=${valueText(value)}`)
  const shown = [clock(time), painted(String(level), hasColour), plain(String(message)), ...words]
  return `${shown.join(' ')}${stackText(fields)}\n`
}

function clock(time: unknown): string {
  return typeof time === 'string' ? time.slice('2026-01-01T'.length, -1) : ''
}

function painted(level: string, hasColour: boolean): string {
  const text = level.toUpperCase().padEnd(LEVEL_WIDTH)
  const style = STYLES[level]
  return hasColour && style !== undefined ? styleText(style, text, { validateStream: false }) : text
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? '[]' : value.map(valueText).join(',')
  if (isError(value)) return quoted(value.code === null ? value.message : `${value.message} (${value.code})`)
  return quoted(String(value))
}

/**
 * Quotes a value with blanks, quotes or control characters, so that bytes from a client cannot control the
 * terminal.
 */
function quoted(text: string): string {
  return /^[\w./:@+~%*?&=#-]+$/.test(text) ? text : plain(JSON.stringify(text))
}

function plain(text: string): string {
  return text.replace(
    NOT_PRINTED,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

function stackText(fields: Record<string, unknown>): string {
  const errors = Object.values(fields).filter(isError)
  return errors
    .map(({ stack }) => (stack === undefined ? '' : `\n${plain(stack).replaceAll('\\u000a', '\n')}`))
    .join('')
}

interface LoggedError {
  readonly message: string
  readonly code: string | null
  readonly stack?: string
}

function isError(value: unknown): value is LoggedError {
  return typeof value === 'object' && value !== null && 'message' in value && 'code' in value
}

function wantsColour(): boolean {
  const { NO_COLOR, TERM } = process.env
  return !NO_COLOR && TERM !== 'dumb'
}

const LEVEL_WIDTH = 5
const STYLES: Readonly<Record<string, 'red' | 'yellow' | 'gray'>> = {
  error: 'red',
  warn: 'yellow',
  debug: 'gray',
}
/** Control characters, and those that change the direction of text. */
const NOT_PRINTED = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu
