import type { Dispatcher, Pool } from 'undici'
import { Fault } from '../../shared/fault.ts'

export interface PaymentServerSettings {
  readonly url: string
  /** CA certificates (PEM) that replace the system's. */
  readonly ca: string | null
  /** For each answer, from the first byte sent to the last one received. */
  readonly timeoutMs: number
}

/** An answer with JSON. */
export interface ServerAnswer {
  readonly status: number
  /** Content-Type, or nothing. */
  readonly type: string
  /** Throws a Fault if the body is not a JSON object. */
  object(): Readonly<Record<string, unknown>>
}

/** Asks a server of the settings for JSON, over reused connections and without redirects. */
export class PaymentServer {
  /** As in messages: `the facilitator`. */
  readonly name: string
  readonly #settings: PaymentServerSettings
  #pool: Promise<Pool> | null = null

  constructor(name: string, settings: PaymentServerSettings) {
    this.name = name
    this.#settings = settings
  }

  async post(path: string, headers: Readonly<Record<string, string>>, body: string): Promise<ServerAnswer> {
    this.#pool ??= this.#open()
    const pool = await this.#pool
    const signal = AbortSignal.timeout(this.#settings.timeoutMs)
    const answer = await pool.request({ method: 'POST', path, headers, body, signal })
    const text = await this.#textOf(answer.body)
    const type = String(answer.headers['content-type'] ?? '')
    return { status: answer.statusCode, type, object: () => this.#objectIn(text) }
  }

  senseless(what: string, name: string): Fault {
    return new Fault('PAYMENT_SERVER_UNUSABLE', `${this.name}'s answer to ${what} has an unusable ${name}`)
  }

  async close(): Promise<void> {
    await (await this.#pool)?.destroy()
  }

  async #open(): Promise<Pool> {
    const { Pool } = await import('undici')
    const { url, ca, timeoutMs } = this.#settings
    const times = { headersTimeout: timeoutMs, bodyTimeout: timeoutMs }
    return new Pool(new URL(url).origin, {
      ...times,
      connections: CONNECTIONS,
      connect: { timeout: timeoutMs, ...(ca === null ? {} : { ca }) },
    })
  }

  async #textOf(body: Dispatcher.ResponseData['body']): Promise<string> {
    const pieces: Buffer[] = []
    let length = 0
    for await (const piece of body) {
      length += (piece as Buffer).length
      if (length > BYTES_MAX) throw new Fault('PAYMENT_SERVER_UNUSABLE', `${this.name} answers with too much`)
      pieces.push(piece as Buffer)
    }
    return Buffer.concat(pieces).toString()
  }

  #objectIn(text: string): Readonly<Record<string, unknown>> {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      throw this.senseless('a question', 'JSON')
    }
    if (typeof value !== 'object' || value === null) throw this.senseless('a question', 'JSON')
    return value as Readonly<Record<string, unknown>>
  }
}

const CONNECTIONS = 16
const BYTES_MAX = 65_536
