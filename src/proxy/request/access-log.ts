import { closeSync, fstatSync, openSync, statSync, write, writeSync } from 'node:fs'
import type { App } from '../../apps/app.ts'
import type { Verdict } from '../../classify/verdict/verdict.ts'
import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import type { ClientPrivacy } from '../../plane/privacy/client-privacy.ts'
import type { Decision } from '../../policy/decide.ts'
import type { McpMessage, McpReading } from '../../wire/mcp/mcp-message.ts'
import { shortUnicode } from '../../wire/own-text.ts'
import type { RequestHead } from '../../wire/request-head.ts'
import type { DecisionId } from '../connection/decision-id.ts'

export interface AccessLogSettings {
  readonly format: 'common' | 'json'
  /** `null`: standard output. */
  readonly file: string | null
  /** The share of requests that are logged. 1: all. */
  readonly sample: number
}

/** The logged request. */
export interface LoggedRequest {
  readonly head: RequestHead
  readonly authority: string | null
}

/** The result of the request. */
export interface LoggedOutcome {
  readonly judged: {
    readonly id: DecisionId
    readonly address: string
    readonly app: App
    readonly verdict: Verdict
    readonly decision: Decision
    readonly print: { readonly connection: { readonly ja4: string | null } }
    readonly mcp: McpReading | null
  }
  /** 0: the client disconnected before there was an answer. */
  readonly status: number
  /** Bytes of the app's answer. `null`: unknown. */
  readonly bytes: number | null
  readonly durationMs: number
  /** When the app was asked, on the clock of `performance.now()`. 0: it was not. */
  readonly askedMs: number
}

export interface AccessEntry extends LoggedRequest, Omit<LoggedOutcome, 'askedMs'> {
  readonly endedMs: number
  /** From asking the app to the end of its answer. `null`: the app was not asked. */
  readonly upstreamMs: number | null
}

/** What a line shows of the client. */
type ShownClient = Pick<ClientPrivacy, 'address' | 'path' | 'userAgent'>

/**
 * One line per request, off the hot path: lines are buffered and written together at intervals. A worker
 * writes whole lines at a time, so that the lines of several workers in one file do not mix. If the disk or
 * the reader is slow, lines are dropped and counted. Queries are omitted, because they can contain secrets.
 */
export class AccessLog {
  readonly #settings: AccessLogSettings
  readonly #log: Log
  readonly #privacy: ShownClient
  readonly #beat: NodeJS.Timeout
  #descriptor: number
  #lines: string[] = []
  #length = 0
  #isWriting = false
  #hasFailed = false
  #looks = 0
  dropped = 0

  /** Throws a Fault if the file cannot be opened. */
  constructor(settings: AccessLogSettings, log: Log, privacy: ShownClient) {
    this.#settings = settings
    this.#privacy = privacy
    this.#log = log
    this.#descriptor = settings.file === null ? STDOUT : opened(settings.file)
    this.#beat = setInterval(() => this.#tick(), BEAT_MS).unref()
  }

  /** `endedMs` is the time of day. */
  add({ head, authority }: LoggedRequest, outcome: LoggedOutcome, endedMs: number): void {
    const { format, sample } = this.#settings
    if (sample < 1 && Math.random() >= sample) return
    const { judged, status, bytes, durationMs, askedMs } = outcome
    const upstreamMs = askedMs === 0 ? null : performance.now() - askedMs
    const entry = { head, authority, judged, status, bytes, durationMs, upstreamMs, endedMs }
    const line = format === 'json' ? jsonLine(entry, this.#privacy) : commonLine(entry, this.#privacy)
    if (this.#length + line.length > WAITING_LENGTH_MAX) {
      this.dropped++
      return
    }
    this.#lines.push(line)
    this.#length += line.length
  }

  /** Writes the buffered lines, as far as the file accepts them at once. */
  close(): void {
    clearInterval(this.#beat)
    while (this.#lines.length > 0) this.#writeNow(this.#take())
    if (this.#settings.file !== null) closeSync(this.#descriptor)
  }

  /** Lines that cannot be written are dropped and counted. */
  #writeNow(bytes: Buffer): void {
    let left = bytes
    try {
      while (left.length > 0) left = left.subarray(writeSync(this.#descriptor, left))
    } catch {
      this.#drop(left)
    }
  }

  #drop(bytes: Buffer): void {
    for (const byte of bytes) if (byte === LF) this.dropped++
  }

  #tick(): void {
    if (this.#isWriting) return
    if (++this.#looks % LOOK_BEATS === 0) this.#followFile()
    if (this.#lines.length > 0) this.#write(this.#take())
  }

  #write(bytes: Buffer): void {
    this.#isWriting = true
    write(this.#descriptor, bytes, (error, written) => {
      this.#isWriting = false
      if (error !== null) return this.#failed(error, bytes)
      this.#hasFailed = false
      if (written < bytes.length) return this.#write(bytes.subarray(written))
      if (this.#lines.length > 0) this.#write(this.#take())
    })
  }

  #failed(error: NodeJS.ErrnoException, bytes: Buffer): void {
    if (error.code === 'EAGAIN') return void setTimeout(() => this.#write(bytes), BEAT_MS).unref()
    this.#drop(bytes)
    if (!this.#hasFailed) this.#log.error('the access log cannot be written; lines are dropped', { error })
    this.#hasFailed = true
  }

  /**
   * Whole lines. For standard output, no more than a pipe takes in one piece, because there may be other
   * writers.
   */
  #take(): Buffer {
    const lengthMax = this.#settings.file === null ? PIPE_LENGTH_MAX : FILE_LENGTH_MAX
    let length = 0
    let count = 0
    while (count < this.#lines.length && (count === 0 || length + this.#lines[count]!.length <= lengthMax))
      length += this.#lines[count++]!.length
    this.#length -= length
    return Buffer.from(this.#lines.splice(0, count).join(''))
  }

  /** If a log rotation has moved the file away, opens a new one. */
  #followFile(): void {
    const { file } = this.#settings
    if (file === null) return
    try {
      const { ino, dev } = fstatSync(this.#descriptor)
      const now = statSync(file, { throwIfNoEntry: false })
      if (now?.ino === ino && now.dev === dev) return
      const descriptor = opened(file)
      closeSync(this.#descriptor)
      this.#descriptor = descriptor
    } catch (error) {
      if (!this.#hasFailed)
        this.#log.error('the access log cannot be opened again', { file, error: error as Error })
      this.#hasFailed = true
    }
  }
}

function opened(file: string): number {
  try {
    return openSync(file, 'a', 0o640)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Fault('ACCESS_LOG_UNWRITABLE', `proxy.access_log_file: ${file} cannot be written (${code})`, {
      cause: error,
    })
  }
}

/**
 * NCSA's common log format, then User-Agent, host, decision id, verdict, agent, action, and the seconds that
 * the request and the app took.
 */
export function commonLine(entry: AccessEntry, privacy: ShownClient): string {
  const { head, authority, judged, status, bytes, durationMs, upstreamMs } = entry
  const { id, address, verdict, decision } = judged
  const userAgent = privacy.userAgent(headerOf(head.rawHeaders, 'user-agent'))
  const request = `${head.method} ${privacy.path(pathOf(head.target)) || '-'} ${PROTOCOLS[head.version]}`
  const words = [
    `${privacy.address(address) || '-'} - - [${commonTime(entry.endedMs)}] "${escaped(request)}" ${status || '-'} ${bytes ?? '-'}`,
    `"${escaped(userAgent ?? '-')}" "${escaped(authority ?? '-')}"`,
    `${id} ${verdict.kind} ${verdict.agent?.id ?? '-'} ${decision.action.kind}`,
    `${seconds(durationMs)} ${upstreamMs === null ? '-' : seconds(upstreamMs)}`,
  ]
  return `${words.join(' ')}\n`
}

export function jsonLine(entry: AccessEntry, privacy: ShownClient): string {
  const { head, authority, judged, status, bytes, durationMs, upstreamMs } = entry
  const { id, address, app, verdict, decision, print, mcp } = judged
  const line = {
    time: new Date(entry.endedMs).toISOString(),
    address: privacy.address(address),
    method: head.method,
    host: authority,
    app: app.id,
    path: privacy.path(pathOf(head.target)),
    protocol: PROTOCOLS[head.version],
    status,
    bytes,
    duration_ms: rounded(durationMs),
    upstream_ms: upstreamMs === null ? null : rounded(upstreamMs),
    user_agent: privacy.userAgent(headerOf(head.rawHeaders, 'user-agent')),
    decision_id: id,
    verdict: verdict.kind,
    confidence: verdict.confidence,
    agent: verdict.agent?.id ?? null,
    name_confidence: verdict.nameConfidence,
    category: verdict.agent?.category ?? null,
    purpose: verdict.agent?.purposes ?? [],
    verified: verdict.proof?.method ?? null,
    ja4: print.connection.ja4,
    rule: decision.rule,
    layer: decision.layer,
    action: decision.action.kind,
    ...(mcp?.kind === 'message' && mcp.method !== null && callOf(mcp)),
  }
  return `${JSON.stringify(line)}\n`
}

/** Never its arguments. */
function callOf({ method, tool }: McpMessage) {
  return {
    mcp_method: shortUnicode(method!, TEXT_MAX),
    mcp_tool: tool === null ? null : shortUnicode(tool, TEXT_MAX),
  }
}

function pathOf(target: string): string {
  const query = target.indexOf('?')
  return query === -1 ? target : target.slice(0, query)
}

function headerOf(rawHeaders: readonly string[], name: string): string | null {
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]!.length === name.length && rawHeaders[i]!.toLowerCase() === name)
      return rawHeaders[i + 1]!
  return null
}

/**
 * Escapes like Apache, so that a line stays one line and a field one field. Each character is a byte, as in
 * `RequestHead`.
 */
function escaped(text: string): string {
  return text.replace(/["\\]|[^\x20-\x7e]/g, (character) =>
    character === '"' || character === '\\'
      ? `\\${character}`
      : `\\x${(character.charCodeAt(0) & 0xff).toString(16).padStart(2, '0')}`,
  )
}

function commonTime(ms: number): string {
  const [, day, month, year, time] = /^\w+, (\d+) (\w+) (\d+) ([\d:]+)/.exec(new Date(ms).toUTCString())!
  return `${day}/${month}/${year}:${time} +0000`
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(3)
}

function rounded(ms: number): number {
  return Math.round(ms * 1_000) / 1_000
}

const PROTOCOLS: Readonly<Record<RequestHead['version'], string>> = {
  '10': 'HTTP/1.0',
  '11': 'HTTP/1.1',
  '20': 'HTTP/2.0',
  '30': 'HTTP/3.0',
}
/** Names of methods and tools that are longer are cut. */
const TEXT_MAX = 256
const STDOUT = 1
const LF = 0x0a
const BEAT_MS = 200
/** Checks the file once a second. */
const LOOK_BEATS = 5
/** Enough for two seconds of 10,000 requests a second. */
const WAITING_LENGTH_MAX = 8 * 2 ** 20
const FILE_LENGTH_MAX = 2 ** 18
/** PIPE_BUF: the size up to which writes to a pipe do not mix with those of other writers. */
const PIPE_LENGTH_MAX = 4_096
