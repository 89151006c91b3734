import { type AppQuota, QUOTA_WINDOWS, type QuotaWindow } from '../../apps/app.ts'
import { ALL_APPS } from '../../apps/app-scope.ts'
import type { Log } from '../../shared/log.ts'
import type { Store } from '../../store/store.ts'
import type { Plan, Principal } from '../http/access/principal.ts'
import { type CountedCall, type CallCount, CallCounts } from './call-counts.ts'

export interface RateLimitSettings {
  readonly freePerDay: number
  readonly standardPerHour: number
}

/** What is left of the caller's quota after this request. */
export interface Quota {
  readonly isExceeded: boolean
  /** The limit that is exceeded, for people. */
  readonly what: string
  readonly retryAfterSeconds: number
  /** `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers). */
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Counts each request against the plan of the principal, and if it is limited to some apps, against the quota of each of
 * them: a team gets no more by making more keys. A database failure must neither lift the limits nor close the API.
 */
export class RateLimits {
  readonly #counts: CallCounts
  readonly #quotaOf: (app: string) => AppQuota | null
  readonly #plans: Record<LimitedPlan, number>

  static async open(
    store: Store,
    settings: RateLimitSettings,
    quotaOf: (app: string) => AppQuota | null,
    log: Log,
  ): Promise<RateLimits> {
    const counts = new CallCounts(store, log)
    await counts.restore(WINDOWS)
    return new RateLimits(counts, settings, quotaOf)
  }

  private constructor(
    counts: CallCounts,
    { freePerDay, standardPerHour }: RateLimitSettings,
    quotaOf: (app: string) => AppQuota | null,
  ) {
    this.#counts = counts
    this.#quotaOf = quotaOf
    this.#plans = { free: freePerDay, standard: standardPerHour }
  }

  /** Takes effect with the next request. */
  use({ freePerDay, standardPerHour }: Partial<RateLimitSettings>): void {
    if (freePerDay !== undefined) this.#plans.free = freePerDay
    if (standardPerHour !== undefined) this.#plans.standard = standardPerHour
  }

  /** Counts one request. */
  async count(principal: Principal): Promise<Quota> {
    const limits = this.#limitsOf(principal)
    if (limits.length === 0) return UNLIMITED
    for (const limit of limits) {
      const known = await this.#counts.known(limit)
      // A caller over one limit counts against no other, and costs no more queries.
      if (known !== null && known.points >= limit.most) return exceeded(limit, known)
    }
    const added = await this.#counts.add(limits)
    const states = limits.map((limit, at) => ({ limit, count: added[at]! }))
    for (const { limit, count } of states)
      if (count.points >= limit.most) await this.#counts.keep(limit, count)
    const over = states.find(({ limit, count }) => count.points > limit.most)
    if (over !== undefined) return exceeded(over.limit, over.count)
    const ofPlan = states.filter(({ limit }) => limit.isOfPlan)
    const ofApps = states.filter(({ limit }) => !limit.isOfPlan)
    return { ...NOT_EXCEEDED, headers: fields([...ofPlan, ...tightest(ofApps)]) }
  }

  /** Stores the counts that changed since the last call, for the next start. */
  write(): Promise<void> {
    return this.#counts.write()
  }

  #limitsOf({ id, plan, scopes, apps }: Principal): readonly CallLimit[] {
    const own = plan === 'unlimited' ? [] : [this.#limitOf(plan, scopes.size === 0 ? SHARED_ID : id)]
    if (apps === ALL_APPS) return own
    return [...own, ...[...apps].flatMap((app) => limitsOfApp(app, this.#quotaOf(app)))]
  }

  #limitOf(plan: LimitedPlan, id: string): CallLimit {
    const windowS = PLAN_WINDOWS[plan]
    const most = this.#plans[plan]
    return { key: `${plan}:${id}`, windowS, most, name: plan, what: 'this plan', isOfPlan: true }
  }
}

/** One of those that a request counts against. */
interface CallLimit extends CountedCall {
  readonly most: number
  /** In the headers. */
  readonly name: string
  /** For people. */
  readonly what: string
  /** Or it is of an app. */
  readonly isOfPlan: boolean
}

interface CallLimitState {
  readonly limit: CallLimit
  readonly count: CallCount
}

type LimitedPlan = Exclude<Plan, 'unlimited'>

function limitsOfApp(app: string, quota: AppQuota | null): readonly CallLimit[] {
  if (quota === null) return []
  return QUOTA_WINDOWS.flatMap((window) => {
    const most = quota[window]
    if (most === undefined) return []
    const key = `${kindOf(window)}:${app}`
    const what = `the app "${app}" (${most} per ${window})`
    return [{ key, windowS: WINDOW_S[window], most, name: `${app}/${window}`, what, isOfPlan: false }]
  })
}

function exceeded(limit: CallLimit, count: CallCount): Quota {
  const headers = fields([{ limit, count }])
  return { isExceeded: true, what: limit.what, retryAfterSeconds: secondsLeft(count), headers }
}

/** The one that is nearest to its end: the headers of 200 apps would be too long. */
function tightest(states: readonly CallLimitState[]): readonly CallLimitState[] {
  return states.toSorted((one, other) => left(one) - left(other)).slice(0, 1)
}

function left({ limit, count }: CallLimitState): number {
  return Math.max(0, limit.most - count.points)
}

function secondsLeft({ endsAtMs }: CallCount): number {
  return Math.max(1, Math.ceil((endsAtMs - Date.now()) / 1000))
}

function fields(states: readonly CallLimitState[]): Quota['headers'] {
  const policies = states.map(({ limit: { name, most, windowS } }) => `"${name}";q=${most};w=${windowS}`)
  const rests = states.map((state) => `"${state.limit.name}";r=${left(state)};t=${secondsLeft(state.count)}`)
  return { 'RateLimit-Policy': policies.join(', '), RateLimit: rests.join(', ') }
}

function kindOf(window: QuotaWindow): string {
  return `app ${window}`
}

/**
 * The shared id of callers without scopes. Anyone can prove to be any number of agents, and each would get
 * its own count.
 */
const SHARED_ID = 'shared'
const WINDOW_S = { minute: 60, hour: 3_600, day: 86_400 } as const
const PLAN_WINDOWS = { free: WINDOW_S.day, standard: WINDOW_S.hour } as const
/** By the kind of a count. */
const WINDOWS: ReadonlyMap<string, number> = new Map([
  ...Object.entries(PLAN_WINDOWS),
  ...QUOTA_WINDOWS.map((window) => [kindOf(window), WINDOW_S[window]] as const),
])
const NOT_EXCEEDED = { isExceeded: false, what: '', retryAfterSeconds: 0 } as const
/**
 * The largest integer in a structured field (RFC 9651 §3.3.1), because the header has no value for
 * "unlimited".
 */
const NO_END = 999_999_999_999_999
const UNLIMITED: Quota = {
  ...NOT_EXCEEDED,
  headers: {
    'RateLimit-Policy': `"unlimited";q=${NO_END};w=${WINDOW_S.hour}`,
    RateLimit: `"unlimited";r=${NO_END};t=${WINDOW_S.hour}`,
  },
}
