import type { Readable, Writable } from 'node:stream'
import { styleText } from 'node:util'

/** The environment of a command. Tests run commands with in-memory streams. */
export interface Io {
  readonly stdin: Readable
  readonly stdout: Writable
  readonly stderr: Writable
  readonly env: Readonly<Record<string, string | undefined>>
  /** Width for text: the terminal's width, or 80 if stdout is not a terminal. */
  readonly columns: number
  /** Number of visible lines. */
  readonly rows: number
  readonly colour: boolean
  /** Whether stdout is a terminal. */
  readonly isTerminal: boolean
}

export function processIo(): Io {
  const isTerminal = process.stdout.isTTY === true
  return {
    // Opening stdin costs time and fails if it is closed, so only commands that read it open it.
    get stdin() {
      return process.stdin
    },
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    get columns() {
      return process.stdout.columns || COLUMNS_WITHOUT_TERMINAL
    },
    get rows() {
      return process.stdout.rows || ROWS_WITHOUT_TERMINAL
    },
    colour: wantsColour(process.env, isTerminal),
    isTerminal,
  }
}

/** FORCE_COLOR wins over NO_COLOR, as in Node. NO_COLOR counts if it is not empty (no-color.org). */
export function wantsColour(env: Io['env'], isTerminal: boolean): boolean {
  const forced = env['FORCE_COLOR']
  if (forced !== undefined) return forced !== '0' && forced !== 'false'
  if (env['NO_COLOR']) return false
  return isTerminal && env['TERM'] !== 'dumb'
}

export function paint(io: Io, style: Parameters<typeof styleText>[0], text: string): string {
  return io.colour ? styleText(style, text, { validateStream: false }) : text
}

const COLUMNS_WITHOUT_TERMINAL = 80
const ROWS_WITHOUT_TERMINAL = 24
