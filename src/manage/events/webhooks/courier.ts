import type { LookupFunction } from 'node:net'
import type { Agent, Dispatcher } from 'undici'
import {
  exchangeBy,
  FetchFault,
  guardedAgent,
  isRedirect,
  redirected,
} from '../../../identity/fetch/guarded-get.ts'

export interface CourierSettings {
  /** PEM certificates to trust; `null`: the system's. */
  readonly ca: string | null
  readonly allowPrivate: boolean
  /** For the whole exchange, from the DNS lookup to the end of the answer. */
  readonly timeoutMs?: number
  /** Replaces the system's lookup in tests. */
  readonly lookup?: LookupFunction
}

/** The result of one POST. */
export interface Posted {
  readonly outcome: PostOutcome
  readonly atMs: number
  readonly durationMs: number
  /** The status of the answer; `null`: there was none. */
  readonly status: number | null
  /** In our own words; `null`: the receiver took it. */
  readonly error: string | null
  /** The beginning of the answer, as plain text. */
  readonly response: string
  /** The delay that the receiver asked for. */
  readonly retryAfterMs: number | null
}

/** `secret`: the signing secret cannot be decrypted. */
export const POST_OUTCOMES = [
  'taken',
  'status',
  'redirect',
  'timeout',
  'address',
  'network',
  'secret',
] as const
export type PostOutcome = (typeof POST_OUTCOMES)[number]

/** Posts to untrusted servers. Connections are reused; each address was checked when it was opened. */
export class Courier {
  readonly #settings: CourierSettings
  readonly #timeoutMs: number
  #agent: Promise<Agent> | null = null

  constructor(settings: CourierSettings) {
    this.#settings = settings
    this.#timeoutMs = settings.timeoutMs ?? TIMEOUT_MS
  }

  async post(url: string, headers: Posting['headers'], body: string, stop: AbortSignal): Promise<Posted> {
    const atMs = Date.now()
    const startedMs = performance.now()
    const answer = await this.#answer({ url, headers, body }, stop)
    return { ...answer, atMs, durationMs: Math.round(performance.now() - startedMs) }
  }

  async close(): Promise<void> {
    await (await this.#agent)?.destroy()
  }

  async #answer({ url, headers, body }: Posting, stop: AbortSignal): Promise<WebhookAnswer> {
    const timeoutMs = this.#timeoutMs
    try {
      if (!this.#settings.allowPrivate && !url.startsWith('https:'))
        throw new FetchFault('address', 'it is not https://, which is needed by now')
      this.#agent ??= guardedAgent({ ...this.#settings, timeoutMs })
      const asked = { url, method: 'POST' as const, headers, body, timeoutMs }
      return await exchangeBy(await this.#agent, asked, stop, answerIn)
    } catch (error) {
      if (!(error instanceof FetchFault)) throw error
      const { reason, message } = error
      const outcome = reason === 'too-large' ? 'network' : reason
      return { outcome, status: error.status, error: message, response: '', retryAfterMs: null }
    }
  }
}

interface Posting {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

type WebhookAnswer = Omit<Posted, 'atMs' | 'durationMs'>

async function answerIn({
  statusCode: status,
  headers,
  body,
}: Dispatcher.ResponseData): Promise<WebhookAnswer> {
  const response = plainText(await beginning(body))
  if (status >= 200 && status <= 299)
    return { outcome: 'taken', status, error: null, response, retryAfterMs: null }
  if (isRedirect(status)) {
    const error = redirected(status).message
    return { outcome: 'redirect', status, error, response, retryAfterMs: null }
  }
  const retryAfterMs = WITH_RETRY_AFTER.has(status) ? retryAfter(headers['retry-after']) : null
  return { outcome: 'status', status, error: `it answers ${status}`, response, retryAfterMs }
}

/** Reads no more than the beginning: leaving the loop closes the connection. */
async function beginning(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of body) {
    pieces.push(piece.subarray(0, RESPONSE_BYTES_MAX - length))
    length += piece.length
    if (length > RESPONSE_BYTES_MAX) break
  }
  return Buffer.concat(pieces)
}

/** The answer can contain anything, and people read it. */
function plainText(bytes: Buffer): string {
  const text = bytes.toString('utf8').replace(UNSEEN, ' ').trim()
  return text.slice(0, RESPONSE_LENGTH_MAX).toWellFormed()
}

/** Seconds or a date (RFC 9110 §10.2.3). */
function retryAfter(header: string | string[] | undefined): number | null {
  const text = Array.isArray(header) ? header[0] : header
  if (text === undefined) return null
  const ms = /^\d{1,9}$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return Number.isFinite(ms) && ms > 0 ? Math.min(ms, RETRY_AFTER_MAX_MS) : null
}

/** As recommended by Standard Webhooks. */
const TIMEOUT_MS = 10_000
const RESPONSE_BYTES_MAX = 4_096
const RESPONSE_LENGTH_MAX = 300
/** A receiver cannot delay deliveries for longer than this. */
const RETRY_AFTER_MAX_MS = 3_600_000
const WITH_RETRY_AFTER: ReadonlySet<number> = new Set([429, 503])
const UNSEEN = /[\s\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]+/gu
