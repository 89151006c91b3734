import { setTimeout as wait } from 'node:timers/promises'
import type { Random } from '../soak/random.ts'

/** A call of the API that was not answered as it should be. */
export interface ApiFailure {
  readonly fromMs: number
  readonly toMs: number
  readonly what: string
}

/** Makes things by the API all the time, asks for statistics in between, and remembers what was acknowledged. */
export class Estate {
  readonly failures: ApiFailure[] = []
  readonly #made: Record<Thing, string[]> = { keys: [], webhooks: [], submissions: [] }
  readonly #url: string
  readonly #key: string
  readonly #random: Random
  readonly #stop = new AbortController()
  readonly #going: Promise<void>
  #count = 0

  constructor(manageUrl: string, key: string, random: Random) {
    this.#url = manageUrl
    this.#key = key
    this.#random = random
    this.#going = this.#go()
  }

  get acknowledged(): number {
    return Object.values(this.#made).reduce((sum, ids) => sum + ids.length, 0)
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#going
  }

  /** Whether it was acknowledged. */
  async make(): Promise<boolean> {
    const picked = this.#random.pick(THINGS)
    // There may be no more than a hundred.
    const thing = this.#made.webhooks.length < WEBHOOKS_MAX || picked !== 'webhooks' ? picked : 'keys'
    const number = ++this.#count
    const answer = await this.#ask('POST', ...WANTED[thing](number))
    if (answer === null) return false
    this.#made[thing].push(thing === 'submissions' ? answer.submissions![0]!.id : answer.id!)
    return true
  }

  /** All requests that the statistics of the last 30 days have; `null`: they are not to be had now. */
  async requests(): Promise<number | null> {
    const answer = await this.#ask('GET', '/v1/stats?window=30d')
    return answer === null ? null : answer.detection!.requests
  }

  /** What was acknowledged and is not there. */
  async lost(): Promise<readonly string[]> {
    const lost: string[] = []
    for (const thing of THINGS) {
      const there = await this.#list(thing)
      lost.push(...this.#made[thing].filter((id) => !there.has(id)).map((id) => `${thing}: ${id} is lost`))
    }
    return lost
  }

  async #list(thing: Thing): Promise<ReadonlySet<string>> {
    const ids = new Set<string>()
    for (let page = 1; ; page++) {
      const answer = await this.#ask('GET', `/v1/${thing}?limit=${PAGE}&page=${page}`)
      if (answer === null) throw new Error(`${thing} cannot be listed: ${this.failures.at(-1)?.what}`)
      const found = answer[thing]!
      for (const { id } of found) ids.add(id)
      if (found.length < PAGE) return ids
    }
  }

  async #go(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      await this.make()
      await this.requests()
      await wait(PAUSE_MS, null, { signal }).catch(() => undefined)
    }
  }

  /** `null`: it failed, which is noted. */
  async #ask(method: string, path: string, body?: object): Promise<Answer | null> {
    const fromMs = Date.now()
    try {
      const response = await fetch(`${this.#url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${this.#key}`,
          connection: 'close',
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(ANSWER_MS_MAX),
      })
      const text = await response.text()
      if (response.ok) return JSON.parse(text)
      this.#failed(fromMs, `${method} ${path}: ${response.status} ${text.slice(0, 300)}`)
    } catch (error) {
      this.#failed(fromMs, `${method} ${path}: ${(error as Error).cause ?? error}`)
    }
    return null
  }

  #failed(fromMs: number, what: string): void {
    this.failures.push({ fromMs, toMs: Date.now(), what })
  }
}

const THINGS = ['keys', 'webhooks', 'submissions'] as const
type Thing = (typeof THINGS)[number]

/** What is looked at of answers; who asks knows which of it there is. */
interface Answer extends Partial<Record<Thing, readonly { readonly id: string }[]>> {
  readonly id?: string
  readonly detection?: { readonly requests: number }
}

const WANTED: Readonly<Record<Thing, (number: number) => readonly [path: string, body: object]>> = {
  keys: (number) => ['/v1/keys', { name: `chaos ${number}`, access: 'read' }],
  webhooks: (number) => [
    '/v1/webhooks',
    { url: `https://hooks.example.com/${number}`, events: ['new_agent'], enabled: false },
  ],
  submissions: (number) => [
    '/v1/signatures/submit',
    {
      fingerprint: `t13d1312h2_${number.toString(16).padStart(12, '0')}_ab7e3b40a677`,
      type: 'ja4',
      agent_name: `chaos-${number}`,
      category: 'llm-sdk',
      user_agent: `chaos-${number}/1.0`,
      notes: 'made while it was disturbed',
    },
  ],
}
const WEBHOOKS_MAX = 80
const PAUSE_MS = 500
const PAGE = 200
const ANSWER_MS_MAX = 20_000
