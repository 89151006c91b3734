import { type IRateLimiterMemoryRecord, RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { Log } from '../../shared/log.ts'
import type { Store } from '../../store/store.ts'
import type { Plan, Principal } from '../http/access/principal.ts'
import { StoreLimiter } from './store-limiter.ts'

export interface RateLimitSettings {
  readonly freePerDay: number
  readonly standardPerHour: number
}

/** What is left of the caller's quota after this request. */
export interface Quota {
  readonly isExceeded: boolean
  readonly retryAfterSeconds: number
  /** `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers). */
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Counts the requests of each principal against its plan. With PostgreSQL, all processes count together. If
 * the database is unreachable, each process counts alone: a database failure must neither lift the limits nor
 * close the API. SQLite has one process: the counts are in memory, and written each second for the next
 * start.
 */
export class RateLimits {
  readonly #store: Store
  readonly #memories: Readonly<Record<LimitedPlan, RateLimiterMemory>>
  /** `null`: counts are only in memory. */
  readonly #shared: Readonly<Record<LimitedPlan, StoreLimiter>> | null
  /** Ids of principals whose counts are not written yet. */
  readonly #changed: Readonly<Record<LimitedPlan, Set<string>>> = { free: new Set(), standard: new Set() }
  /** `RateLimit-Policy`, which changes only with the limits. */
  readonly #policies: Record<LimitedPlan, string> = { free: '', standard: '' }

  static async open(store: Store, settings: RateLimitSettings, log: Log): Promise<RateLimits> {
    const limits = new RateLimits(store, settings, log)
    if (limits.#shared === null) await limits.#restore()
    return limits
  }

  /** Takes effect with the next request. */
  use({ freePerDay, standardPerHour }: Partial<RateLimitSettings>): void {
    if (freePerDay !== undefined) this.#memories.free.points = freePerDay
    if (standardPerHour !== undefined) this.#memories.standard.points = standardPerHour
    for (const plan of LIMITED_PLANS) {
      const { points, duration } = this.#memories[plan]
      this.#policies[plan] = policyOf(plan, points, duration)
    }
  }

  private constructor(store: Store, { freePerDay, standardPerHour }: RateLimitSettings, log: Log) {
    this.#store = store
    const free = new RateLimiterMemory({ keyPrefix: 'free', points: freePerDay, duration: DAY_S })
    const standard = new RateLimiterMemory({
      keyPrefix: 'standard',
      points: standardPerHour,
      duration: HOUR_S,
    })
    this.#memories = { free, standard }
    this.use({})
    const shared = (memory: RateLimiterMemory) => new StoreLimiter(store.rateLimits, memory, log)
    this.#shared = store.kind === 'sqlite' ? null : { free: shared(free), standard: shared(standard) }
  }

  /** Counts one request. */
  async count({ id: own, plan, scopes }: Principal): Promise<Quota> {
    if (plan === 'unlimited') return UNLIMITED
    const id = scopes.size === 0 ? SHARED_ID : own
    let result: RateLimiterRes
    let isExceeded = false
    try {
      result = await (this.#shared ?? this.#memories)[plan].consume(id)
    } catch (error) {
      if (!(error instanceof RateLimiterRes)) throw error
      result = error
      isExceeded = true
    }
    if (!isExceeded && this.#shared === null) this.#changed[plan].add(id)
    const seconds = Math.max(1, Math.ceil(result.msBeforeNext / 1000))
    return {
      isExceeded,
      retryAfterSeconds: seconds,
      headers: fields(this.#policies[plan], plan, result.remainingPoints, seconds),
    }
  }

  /** Stores the counts that changed since the last call, for the next start. */
  async write(): Promise<void> {
    const changed = LIMITED_PLANS.map((plan) => [plan, new Set(this.#changed[plan])] as const)
    const counts = changed.flatMap(([plan, ids]) => this.#countsOf(plan, ids))
    if (counts.length === 0) return
    for (const plan of LIMITED_PLANS) this.#changed[plan].clear()
    try {
      await this.#store.transaction(async (queries) => {
        for (const count of counts) await this.#store.rateLimits.keep(count, queries)
      })
    } catch (error) {
      for (const [plan, ids] of changed) for (const id of ids) this.#changed[plan].add(id)
      throw error
    }
  }

  #countsOf(plan: LimitedPlan, ids: ReadonlySet<string>) {
    const memory = this.#memories[plan]
    if (ids.size === 0) return []
    return memory
      .dump()
      .storage.flatMap((record) => (ids.has(String(record.key)) ? countOf(memory, record) : []))
  }

  async #restore(): Promise<void> {
    const counts = await this.#store.rateLimits.current(Date.now())
    for (const memory of Object.values(this.#memories)) {
      const storage = counts
        .filter(({ key }) => key === memory.getKey(memory.parseKey(key)))
        .map(({ key, points, endsAtMs }) => ({
          key: memory.parseKey(key),
          value: points,
          // After a wrong clock, no principal is locked out for longer than one window.
          expiresAt: Math.min(endsAtMs, Date.now() + memory.duration * 1000),
        }))
      memory.restore({ version: 1, storage })
    }
  }
}

type LimitedPlan = Exclude<Plan, 'unlimited'>

function countOf(memory: RateLimiterMemory, { key, value, expiresAt }: IRateLimiterMemoryRecord) {
  return { key: memory.getKey(key), points: value, endsAtMs: expiresAt ?? 0 }
}

function policyOf(plan: Plan, quota: number, windowSeconds: number): string {
  return `"${plan}";q=${quota};w=${windowSeconds}`
}

function fields(
  policy: string,
  plan: Plan,
  remaining: number,
  seconds: number,
): Readonly<Record<string, string>> {
  return { 'RateLimit-Policy': policy, RateLimit: `"${plan}";r=${remaining};t=${seconds}` }
}

/**
 * The shared id of callers without scopes. Anyone can prove to be any number of agents, and each would get
 * its own count.
 */
const SHARED_ID = 'shared'
const LIMITED_PLANS = ['free', 'standard'] as const
const HOUR_S = 3_600
const DAY_S = 86_400
/**
 * The largest integer in a structured field (RFC 9651 §3.3.1), because the header has no value for
 * "unlimited".
 */
const NO_END = 999_999_999_999_999
const UNLIMITED: Quota = {
  isExceeded: false,
  retryAfterSeconds: 0,
  headers: fields(policyOf('unlimited', NO_END, HOUR_S), 'unlimited', NO_END, HOUR_S),
}
