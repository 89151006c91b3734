import { setTimeout as wait } from 'node:timers/promises'
import type { Random } from '../soak/random.ts'
import { until } from '../soak/until.ts'
import type { Api } from './api.ts'

/** Makes things by the API all the time, asks for statistics in between, and remembers what was acknowledged. */
export class Estate {
  readonly #made: Record<Thing, string[]> = { keys: [], webhooks: [], submissions: [] }
  readonly #api: Api
  readonly #random: Random
  readonly #stop = new AbortController()
  readonly #going: Promise<void>
  #count = 0

  constructor(api: Api, random: Random) {
    this.#api = api
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
    const thing = this.#made[picked].length < MOST[picked] ? picked : 'keys'
    const number = ++this.#count
    const answer = await this.#api.ask<Answer>('POST', ...WANTED[thing](number))
    if (answer === null) return false
    this.#made[thing].push(thing === 'submissions' ? answer.submissions![0]!.id : answer.id!)
    return true
  }

  /** All requests that the statistics of the last 30 days have; `null`: not available now. */
  async requests(): Promise<number | null> {
    const answer = await this.#api.ask<Answer>('GET', '/v1/stats?window=30d')
    return answer === null ? null : answer.detection!.requests
  }

  /** The same, once all of what is certain to come has, and nothing more comes. */
  async settled(least: number): Promise<number> {
    let before = -1
    let same = 0
    const isSettled = async () => {
      const now = await this.requests()
      same = now !== null && now === before ? same + 1 : 0
      before = now ?? -1
      return same >= SETTLED_TIMES && before >= least
    }
    await until(isSettled, SETTLED_MS_MAX)
    return before
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
      const answer = await this.#api.ask<Answer>('GET', `/v1/${thing}?limit=${PAGE}&page=${page}`)
      if (answer === null) throw new Error(`${thing} cannot be listed: ${this.#api.lastFailure}`)
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
}

const THINGS = ['keys', 'webhooks', 'submissions'] as const
type Thing = (typeof THINGS)[number]

/** The checked members of answers; the caller knows which of them exist. */
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
/** There may be a hundred webhooks, and a thousand unreviewed submissions. */
const MOST: Readonly<Record<Thing, number>> = {
  keys: Number.POSITIVE_INFINITY,
  webhooks: 80,
  submissions: 900,
}
const PAUSE_MS = 500
const PAGE = 200
const SETTLED_TIMES = 10
/** What a manager had taken when it was killed comes again after a while. */
const SETTLED_MS_MAX = 90_000
