import { Agent, request } from 'undici'
import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import type { NumberedSighting } from '../../store/traffic/sightings.ts'
import type { Sink } from '../events/sinks/sink.ts'
import type { SinkCounts } from '../events/sinks/sink-metrics.ts'
import { type LogRecord, logRecord } from './otlp-log-record.ts'
import { RefusedRequests } from './refused-requests.ts'

export interface OtlpLogSettings {
  /** OTLP over HTTP: https://opentelemetry.io/docs/specs/otlp/#otlphttp */
  readonly endpoint: string
  /** The headers with the token, which may change. Throws a Fault if its file cannot be read. */
  readonly headers: () => Promise<Readonly<Record<string, string>>>
  /** `service.name` */
  readonly service: string
  /** PEM certificates that are trusted instead of the system's. */
  readonly ca: string | null
  readonly timeoutMs?: number
}

/**
 * Sends requests as log records to a collector (OTLP over HTTP, as JSON), each at least once. If it answers 400 or 413, half
 * of the records are sent at a time, until the refused ones are found.
 */
export class OtlpLogSink implements Sink<NumberedSighting> {
  readonly confirmMs = 0
  readonly #settings: OtlpLogSettings
  readonly #counts: SinkCounts
  readonly #refusals: RefusedRequests
  #closing = new AbortController()
  #agent: Agent | null = null

  constructor(settings: OtlpLogSettings, log: Log, counts: SinkCounts) {
    this.#settings = settings
    this.#counts = counts
    this.#refusals = new RefusedRequests(log, counts)
  }

  async write(items: readonly NumberedSighting[]): Promise<void> {
    if (this.#closing.signal.aborted) this.#closing = new AbortController()
    const outcome: WriteOutcome = { accepted: 0, rejected: 0, refused: 0, status: 0 }
    const records = items.map(({ document }) => logRecord(document))
    try {
      await this.#send(records, outcome)
    } catch (error) {
      throw error instanceof Fault ? error : away(`cannot be reached (${reasonOf(error)})`, error)
    }
    const { accepted, rejected, refused, status } = outcome
    // The fault is the receiver's, not that of single records.
    if (accepted + rejected === 0) throw away(`answered ${status}`)
    this.#counts.sent += accepted
    this.#refusals.add(rejected + refused, refused > 0 ? `answered ${status}` : 'rejected in part')
  }

  broken(): null {
    return null
  }

  async close(): Promise<void> {
    this.#closing.abort()
    const agent = this.#agent
    this.#agent = null
    await agent?.destroy()
  }

  async #send(records: readonly LogRecord[], outcome: WriteOutcome): Promise<void> {
    const { status, rejected } = await this.#post(records)
    if (status >= 200 && status < 300) {
      const notTaken = Math.min(rejected, records.length)
      outcome.rejected += notTaken
      outcome.accepted += records.length - notTaken
      return
    }
    if (!OF_RECORDS.has(status)) throw away(`answered ${status}`)
    outcome.status = status
    if (records.length === 1) {
      outcome.refused++
      if (outcome.accepted === 0 && outcome.refused > REFUSED_FIRST_MAX) throw away(`answered ${status}`)
      return
    }
    const half = records.length >> 1
    await this.#send(records.slice(0, half), outcome)
    await this.#send(records.slice(half), outcome)
  }

  async #post(
    records: readonly LogRecord[],
  ): Promise<{ readonly status: number; readonly rejected: number }> {
    const { endpoint, headers, service, ca, timeoutMs = TIMEOUT_MS } = this.#settings
    this.#agent ??= new Agent(ca === null ? {} : { connect: { ca } })
    const resource = { attributes: [{ key: 'service.name', value: { stringValue: service } }] }
    const scopeLogs = [{ scope: { name: 'gatehouse' }, logRecords: records }]
    const answer = await request(endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(await headers()) },
      body: JSON.stringify({ resourceLogs: [{ resource, scopeLogs }] }),
      dispatcher: this.#agent,
      signal: AbortSignal.any([this.#closing.signal, AbortSignal.timeout(timeoutMs)]),
    })
    return { status: answer.statusCode, rejected: rejectedIn(await shortText(answer.body)) }
  }
}

interface WriteOutcome {
  accepted: number
  /** The receiver has taken the others of the same message. */
  rejected: number
  /** By a status, one by one. */
  refused: number
  /** The last status that has refused records. */
  status: number
}

/** "Partial success" of an answer. */
function rejectedIn(answer: string): number {
  try {
    const { partialSuccess } = JSON.parse(answer) as { partialSuccess?: { rejectedLogRecords?: unknown } }
    const rejected = Number(partialSuccess?.rejectedLogRecords ?? 0)
    return Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0
  } catch {
    return 0
  }
}

/** All of an answer is read, but only a short one is used. */
async function shortText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of body) {
    length += piece.length
    if (length > ANSWER_MAX) throw away('sends too long an answer')
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}

function reasonOf(error: unknown): string {
  const { code, name } = error as { readonly code?: unknown; readonly name: string }
  return typeof code === 'string' ? code : name
}

function away(what: string, cause?: unknown): Fault {
  return new Fault('SINK_AWAY', `the receiver of OTLP logs ${what}`, { cause })
}

/** They can be about single records. */
const OF_RECORDS: ReadonlySet<number> = new Set([400, 413])
/** So many refused records before the first accepted one mean that the receiver refuses all. */
const REFUSED_FIRST_MAX = 8
const TIMEOUT_MS = 10_000
const ANSWER_MAX = 65_536
