/** A call of the API that was not answered as it should be. */
export interface ApiFailure {
  readonly fromMs: number
  readonly toMs: number
  readonly what: string
}

/** The API as a program calls it, which remembers what failed. */
export class Api {
  readonly failures: ApiFailure[] = []
  readonly #url: () => string
  readonly #key: string

  /** `url`: where the next call goes. */
  constructor(url: () => string, key: string) {
    this.#url = url
    this.#key = key
  }

  get lastFailure(): string | undefined {
    return this.failures.at(-1)?.what
  }

  /** `null`: it failed, which is noted. */
  async ask<Answer>(
    method: string,
    path: string,
    body?: object,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer | null> {
    const fromMs = Date.now()
    const url = this.#url()
    const failed = (what: string) => {
      this.failures.push({ fromMs, toMs: Date.now(), what: `${method} ${url}${path}: ${what}` })
      return null
    }
    try {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${this.#key}`,
          connection: 'close',
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(ANSWER_MS_MAX),
      })
      const text = await response.text()
      return response.ok ? JSON.parse(text) : failed(`${response.status} ${text.slice(0, 300)}`)
    } catch (error) {
      return failed(String((error as Error).cause ?? error))
    }
  }
}

const ANSWER_MS_MAX = 20_000
