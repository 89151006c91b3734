import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Owner } from '../store/databases.ts'

export interface Heard {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly ms: number
}

/** Sends an address as it stands, which `fetch` would make right first, and reads the answer. */
export class Caller {
  readonly #url: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #agent: Agent

  constructor(t: Owner, url: string, headers: Readonly<Record<string, string>>, maxSockets = 4) {
    this.#agent = new Agent({ keepAlive: true, maxSockets })
    this.#url = url
    this.#headers = headers
    t.teardown(() => this.#agent.destroy())
  }

  async ask(
    method: string,
    path: string,
    body: string | Buffer | null = null,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Heard> {
    const startMs = performance.now()
    const headers = {
      ...this.#headers,
      ...(body === null
        ? {}
        : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
      ...more,
    }
    const { promise, resolve, reject } = Promise.withResolvers<Heard>()
    // Does not wait for the end of endless answers, like a stream of events.
    const signal = AbortSignal.timeout(LIMIT_MS)
    const sent = request(this.#url, { method, path, headers, agent: this.#agent, signal }, (answer) => {
      const status = answer.statusCode!
      text(answer).then(
        (given) => resolve({ status, headers: answer.headers, text: given, ms: performance.now() - startMs }),
        reject,
      )
    })
    sent.on('error', reject)
    sent.end(body ?? undefined)
    return promise
  }
}

/** Far longer than any request here takes on a busy machine: such a request hangs. */
export const LIMIT_MS = 20_000
