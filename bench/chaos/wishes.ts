import { setTimeout as wait } from 'node:timers/promises'
import { parse } from 'yaml'
import { policy } from '../soak/files.ts'
import type { View } from '../soak/app-view.ts'
import type { Api } from './api.ts'

/**
 * What operators want of a fleet, changed by the API all the time: a policy that has a number, and whether a fingerprint
 * is an agent's. Every proxy has to come to what was acknowledged last.
 */
export class Wishes {
  readonly #api: Api
  readonly #stop = new AbortController()
  readonly #going: Promise<void>
  #asked = 0
  /** The policy that was acknowledged last. */
  #acknowledged = 0
  /** Whose fingerprint it is that is judged now so and now so. */
  #submission: string | null = null
  #isAgent = false

  constructor(api: Api) {
    this.#api = api
    this.#going = this.#go()
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#going
  }

  /** Whether it was acknowledged. */
  async changePolicy(): Promise<boolean> {
    const number = ++this.#asked
    const answer = await this.#api.ask('PUT', '/v1/policy', parse(policy(`good-${number}`)), {
      'if-match': '*',
    })
    if (answer !== null) this.#acknowledged = Math.max(this.#acknowledged, number)
    return answer !== null
  }

  /** Takes that fingerprint for an agent's, or no longer. Whether it was acknowledged. */
  async changeSignature(ja4: string): Promise<boolean> {
    this.#submission ??= await this.#submit(ja4)
    if (this.#submission === null) return false
    const decision = this.#isAgent ? 'rollback' : 'accept'
    const answer = await this.#api.ask('POST', `/v1/submissions/${this.#submission}/review`, { decision })
    // One that seemed to fail may have been taken.
    const isSo = answer !== null || this.#api.lastFailure?.includes(': 409 ') === true
    if (!isSo) return false
    if (this.#isAgent) this.#submission = null
    this.#isAgent = !this.#isAgent
    return true
  }

  /** The number of the policy that was acknowledged last. */
  get acknowledged(): number {
    return this.#acknowledged
  }

  /** What of it a proxy does not know; `null`: nothing. A policy later than the one with that number will do. */
  missingIn({ revision, agent }: View, number: number): string | null {
    const its = Number(revision?.replace('good-', ''))
    if (!(its >= number && its <= this.#asked))
      return `the policy is ${revision}, and good-${number} was acknowledged`
    const wanted = this.#isAgent ? AGENT : null
    return agent === wanted ? null : `it is taken for ${agent}, and should be for ${wanted}`
  }

  async #submit(ja4: string): Promise<string | null> {
    const submission = { fingerprint: ja4, type: 'ja4', agent_name: AGENT, category: 'orchestrator' }
    const answer = await this.#api.ask<{ submissions: [{ id: string }] }>(
      'POST',
      '/v1/signatures/submit',
      submission,
    )
    return answer?.submissions[0].id ?? null
  }

  async #go(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      await this.changePolicy()
      await wait(PAUSE_MS, null, { signal }).catch(() => undefined)
    }
  }
}

const AGENT = 'Acme Chaos'
const PAUSE_MS = 1500
