import type { Pool } from './upstream-pool.ts'
import type { UpstreamRequest } from './upstream-request.ts'
import type { Receiver, UpstreamStream } from './upstream-stream.ts'

export interface CheckSettings {
  readonly path: string
  readonly intervalMs: number
  readonly timeoutMs: number
}

/** Checks a target periodically. */
export class HealthCheck {
  readonly #pool: Pool
  readonly #settings: CheckSettings
  readonly #found: (isWell: boolean) => void
  #timer: NodeJS.Timeout
  #question: Question | null = null

  constructor(pool: Pool, settings: CheckSettings, found: (isWell: boolean) => void) {
    this.#pool = pool
    this.#settings = settings
    this.#found = found
    // A random delay, because many proxies check the same app.
    this.#timer = this.#in(settings.intervalMs * Math.random(), () => this.#ask())
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#question?.cancel()
    this.#question = null
  }

  #ask(): void {
    const question = new Question(this.#pool, this.#settings.path, (isWell) => this.#answered(isWell))
    // The target was not asked, which says nothing about its health.
    if (!question.isAsked) return this.#askLater()
    this.#question = question
    this.#timer = this.#in(this.#settings.timeoutMs, () => {
      this.#question?.cancel()
      this.#answered(false)
    })
  }

  #answered(isWell: boolean): void {
    this.#question = null
    clearTimeout(this.#timer)
    this.#askLater()
    this.#found(isWell)
  }

  #askLater(): void {
    this.#timer = this.#in(this.#settings.intervalMs, () => this.#ask())
  }

  #in(delayMs: number, what: () => void): NodeJS.Timeout {
    return setTimeout(what, delayMs).unref()
  }
}

/** One GET. An answer with 2xx or 3xx means healthy. The body is read and dropped. */
class Question implements Receiver {
  readonly request: UpstreamRequest
  readonly isBodyWhole = true
  readonly #answered: (isWell: boolean) => void
  #stream: UpstreamStream | null
  #isWell = false

  constructor(pool: Pool, path: string, answered: (isWell: boolean) => void) {
    this.request = { ...REQUEST, target: path }
    this.#answered = answered
    this.#stream = pool.probe(this)
  }

  /** `false`: too many requests wait for a connection already. */
  get isAsked(): boolean {
    return this.#stream !== null
  }

  cancel(): void {
    this.#stream?.cancel()
  }

  opened(stream: UpstreamStream): void {
    this.#stream = stream
  }

  answered(status: number): void {
    this.#isWell = status >= 200 && status < 400
  }

  received(): boolean {
    return true
  }

  completed(): void {
    this.#answered(this.#isWell)
  }

  failed(): void {
    this.#answered(false)
  }

  informed(): void {}
  writable(): void {}
}

const REQUEST: UpstreamRequest = {
  method: 'GET',
  target: '/',
  headers: { own: ['User-Agent', 'gatehouse-health-check', 'Accept', '*/*'], introduction: null },
  lines: 'User-Agent: gatehouse-health-check\r\nAccept: */*\r\n',
  hostAt: -1,
  bodyLength: 0,
  expectsContinue: false,
  acceptsTrailers: false,
  isIdempotent: true,
  neverIndexed: [],
}
