import { write, writeSync } from 'node:fs'
import { type Level as PinoLevel, pino } from 'pino'
import { isatty } from 'node:tty'
import { Fault } from './fault.ts'
import { logText } from './log-text.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/**
 * JSON lines. The type limits what a line can contain: single values made by Gatehouse, never objects from
 * outside, so that no header, cookie or token gets into the log with an object.
 */
export interface Log {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  /** The same log with fields added to every line. */
  with(fields: LogFields): Log
  /** Applies to this log only; logs already derived from it keep their level. */
  setLevel(level: LogLevel): void
  /** Writes everything logged so far; call it before the process ends. */
  flush(): void
}

type LogFields = Readonly<Record<string, LogValue>>
/** An Error is logged with its name, code and message, and with its stack if it is a bug. */
type LogValue = string | number | boolean | null | readonly string[] | Error

export interface LogSettings {
  readonly level: LogLevel
  /** Maximum lines per second for one message; `null`: no limit. */
  readonly perSecond: number | null
  /** `auto`: text on a terminal, else JSON. */
  readonly format: LogFormat
}

type LogFormat = 'auto' | 'text' | 'json'

/** Writes to a file descriptor without waiting for its reader. */
export function createLog({ level, perSecond, format }: LogSettings, fileDescriptor = STDERR): Log {
  const lines = new LineWriter(fileDescriptor)
  const isText = format === 'text' || (format === 'auto' && isatty(fileDescriptor))
  const stream: LogStream = isText ? { write: (line) => lines.write(logText(line)) } : lines
  return createLogTo(level, stream, () => lines.flush(), perSecond)
}

/** Discards everything. */
export function silentLog(): Log {
  return createLog({ level: 'silent', perSecond: null, format: 'json' })
}

/** For tests: lines go to `stream`. */
export function createLogTo(
  level: LogLevel,
  stream: LogStream,
  flush: () => void = () => undefined,
  perSecond: number | null = null,
): Log {
  const base = { base: { pid: process.pid }, level, timestamp: pino.stdTimeFunctions.isoTime }
  const formatters = { level: (label: string) => ({ level: label }) }
  const redact = { paths: [...SECRET_FIELDS], censor: '<redacted>' }
  const sampler = perSecond === null ? null : new Sampler(perSecond)
  return new PinoLog(pino({ ...base, formatters, redact, messageKey: 'message' }, stream), sampler, flush)
}

interface LogStream {
  write(line: string): void
}

class PinoLog implements Log {
  readonly #pino: pino.Logger
  /** Shared by a log and its derived logs; `null`: every line is written. */
  readonly #sampler: Sampler | null
  readonly flush: () => void

  constructor(logger: pino.Logger, sampler: Sampler | null, flush: () => void) {
    this.#pino = logger
    this.#sampler = sampler
    this.flush = flush
  }

  debug(message: string, fields: LogFields = NO_FIELDS): void {
    this.#write('debug', message, fields)
  }

  info(message: string, fields: LogFields = NO_FIELDS): void {
    this.#write('info', message, fields)
  }

  warn(message: string, fields: LogFields = NO_FIELDS): void {
    this.#write('warn', message, fields)
  }

  error(message: string, fields: LogFields = NO_FIELDS): void {
    this.#write('error', message, fields)
  }

  with(fields: LogFields): Log {
    return new PinoLog(this.#pino.child(plainFields(fields)), this.#sampler, this.flush)
  }

  setLevel(level: LogLevel): void {
    this.#pino.level = level
  }

  #write(level: PinoLevel, message: string, fields: LogFields): void {
    if (!this.#pino.isLevelEnabled(level)) return
    const leftOut = this.#sampler === null ? 0 : this.#sampler.take(message, performance.now())
    if (leftOut === null) return
    const plain = plainFields(fields)
    if (leftOut > 0) plain['left_out'] = leftOut
    this.#pino[level](plain, message)
  }
}

/** Keyed by message: the program has a fixed set of messages, and client data is in fields. */
class Sampler {
  readonly #perSecond: number
  readonly #messages = new Map<string, { second: number; written: number; leftOut: number }>()

  constructor(perSecond: number) {
    this.#perSecond = perSecond
  }

  /** `null`: skip this line; otherwise the number of lines skipped since the last written one. */
  take(message: string, nowMs: number): number | null {
    const second = Math.floor(nowMs / 1_000)
    let said = this.#messages.get(message)
    if (said === undefined) {
      said = { second, written: 0, leftOut: 0 }
      this.#messages.set(message, said)
    }
    if (said.second !== second) {
      said.second = second
      said.written = 0
    }
    if (said.written === this.#perSecond) {
      said.leftOut++
      return null
    }
    const { leftOut } = said
    said.written++
    said.leftOut = 0
    return leftOut
  }
}

function plainFields(fields: LogFields): Record<string, unknown> {
  const plain: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) {
    plain[name] = value instanceof Error ? plainError(value) : value
  }
  return plain
}

/**
 * Errors of Node's parsers contain the bytes that failed to parse (`rawPacket`), including a client's
 * cookies.
 */
function plainError(error: Error): Record<string, unknown> {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null
  const isOurBug = !(error instanceof Fault) && !('syscall' in error)
  return { name: error.name, code, message: error.message, ...(isOurBug && { stack: error.stack }) }
}

/** pino's own writer retries forever at exit if the reader is gone, so a process could not stop. */
class LineWriter implements LogStream {
  readonly #fileDescriptor: number
  #lines: string[] = []
  #length = 0
  /** The buffer being written; lines logged meanwhile are written together afterwards. */
  #underWay: Buffer | null = null
  #isScheduled = false
  /** The reader has closed. The process goes on without a log. */
  #isGone = false

  constructor(fileDescriptor: number) {
    this.#fileDescriptor = fileDescriptor
  }

  write(line: string): void {
    if (this.#isGone || this.#length + line.length > UNWRITTEN_LENGTH_MAX) return
    this.#lines.push(line)
    this.#length += line.length
    if (this.#isScheduled || this.#underWay !== null) return
    this.#isScheduled = true
    setImmediate(() => this.#begin())
  }

  /** Writes what it can within a short time. */
  flush(): void {
    let bytes = this.#take()
    const endMs = performance.now() + FLUSH_MS
    while (bytes.length > 0 && !this.#isGone) {
      try {
        bytes = bytes.subarray(writeSync(this.#fileDescriptor, bytes))
      } catch (error) {
        if (!isForNow(error) || performance.now() > endMs) return
        Atomics.wait(NEVER, 0, 0, PAUSE_MS)
      }
    }
  }

  #begin(): void {
    this.#isScheduled = false
    if (this.#lines.length > 0) this.#write(this.#take())
  }

  #take(): Buffer {
    const bytes = Buffer.from(this.#lines.join(''))
    this.#lines = []
    this.#length = 0
    return bytes
  }

  #write(bytes: Buffer): void {
    this.#underWay = bytes
    write(this.#fileDescriptor, bytes, (error, written) => {
      if (error !== null && !isForNow(error)) {
        this.#isGone = true
        return void this.#take()
      }
      if (error !== null) return void setTimeout(() => this.#write(bytes), PAUSE_MS)
      if (written < bytes.length) return this.#write(bytes.subarray(written))
      this.#underWay = null
      this.#begin()
    })
  }
}

/** The reader has not kept up. */
function isForNow(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'EAGAIN' || code === 'EBUSY'
}

const STDERR = 2
/** Beyond this, lines are dropped: a log without a reader must not fill the memory. */
const UNWRITTEN_LENGTH_MAX = 2 ** 20
/** Stopping the process waits this long at most. */
const FLUSH_MS = 500
const PAUSE_MS = 50
const NEVER = new Int32Array(new SharedArrayBuffer(4))
const NO_FIELDS: LogFields = {}
/** Second line of defence: the types already exclude these. */
const SECRET_FIELDS = [
  'headers',
  'cookie',
  'authorization',
  'token',
  'passphrase',
  'secret',
  'key',
  'adminKey',
]
