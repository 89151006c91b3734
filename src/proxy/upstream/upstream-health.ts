import type { UpstreamFailure } from './upstream-stream.ts'

/** How a target's health is judged by the requests it gets. */
export interface HealthSettings {
  /** Failures in a row that take it out. */
  readonly unhealthyAfter: number
  /** Answers of active checks in a row that bring it back. */
  readonly healthyAfter: number
}

/** What the last failure of a target was; `check`: an active check failed. */
export type TargetFailure = UpstreamFailure | 'check'

/**
 * Whether a target may be given requests. Failures in a row take it out, for a while that grows; then one request at a
 * time tries it, until one is answered. Active checks, where there are any, have a say of their own.
 */
export class TargetHealth {
  readonly #settings: HealthSettings
  #failures = 0
  #backOffMs = BACK_OFF_MIN_MS
  /** Until then nothing goes there; 0 when it is in. */
  #outUntilMs = 0
  #isTried = false
  #checksInARow = 0
  #isCheckedWell = true
  /** Checks that went well since a request failed. */
  #checksSinceFailure = 0
  #lastFailure: TargetFailure | null = null
  #lastFailedMs = 0

  constructor(settings: HealthSettings) {
    this.#settings = settings
  }

  /** As far as is known. */
  get isHealthy(): boolean {
    return this.#outUntilMs === 0 && this.#isCheckedWell
  }

  /** The last one; `null`: it has not failed. */
  get lastFailure(): TargetFailure | null {
    return this.#lastFailure
  }

  /** Until when the failures of requests keep it out; 0: they do not. */
  get outUntilMs(): number {
    return this.#outUntilMs
  }

  /**
   * Whether a load balancer should send requests to this proxy for its sake. One that has had no request for a while is
   * worth one even if it is out: without any, nothing would find out that it works again.
   */
  isWorthTrying(nowMs: number): boolean {
    return this.isHealthy || (this.#isCheckedWell && nowMs - this.#lastFailedMs >= UNTRIED_MS)
  }

  /** May it have a request now? One that comes back from a pause has one at a time. */
  mayTry(nowMs: number): boolean {
    if (!this.#isCheckedWell) return false
    return this.#outUntilMs === 0 || (nowMs >= this.#outUntilMs && !this.#isTried)
  }

  /** A request is on its way. */
  tried(): void {
    if (this.#outUntilMs !== 0) this.#isTried = true
  }

  /** The request says nothing of the target: its client has gone, or the failure is ours. */
  abstained(): void {
    this.#isTried = false
  }

  succeeded(): void {
    if (this.#failures === 0 && this.#outUntilMs === 0) return
    this.#failures = 0
    this.#outUntilMs = 0
    this.#backOffMs = BACK_OFF_MIN_MS
    this.#isTried = false
  }

  /** `true` when this one has taken it out. `chance` in [0, 1) keeps proxies from coming back all at once. */
  failed(nowMs: number, chance: number, failure: UpstreamFailure): boolean {
    this.#isTried = false
    this.#lastFailure = failure
    this.#lastFailedMs = nowMs
    this.#checksSinceFailure = 0
    this.#failures++
    const wasOut = this.#outUntilMs !== 0
    // Requests that were under way when it was taken out say nothing new.
    if (wasOut && nowMs < this.#outUntilMs) return false
    if (!wasOut && this.#failures < this.#settings.unhealthyAfter) return false
    this.#outUntilMs = nowMs + this.#backOffMs * (1 - BACK_OFF_JITTER * chance)
    this.#backOffMs = Math.min(this.#backOffMs * 2, BACK_OFF_MAX_MS)
    return !wasOut
  }

  /** What an active check has found; `true` when it changes something. */
  checked(isWell: boolean): boolean {
    if (isWell === this.#isCheckedWell) {
      this.#checksInARow = 0
      return isWell && this.#checkedWellAgain()
    }
    const needed = isWell ? this.#settings.healthyAfter : this.#settings.unhealthyAfter
    if (++this.#checksInARow < needed) return false
    this.#checksInARow = 0
    this.#isCheckedWell = isWell
    // A check that goes well is as good as a request that does.
    if (isWell) this.succeeded()
    else this.#lastFailure = 'check'
    return true
  }

  /** Checks bring back what requests took out, if no request has failed meanwhile. */
  #checkedWellAgain(): boolean {
    if (this.#outUntilMs === 0 || ++this.#checksSinceFailure < this.#settings.healthyAfter) return false
    this.succeeded()
    return true
  }
}

/** Long enough for an app to start again, short enough for nobody to notice that it has. */
const BACK_OFF_MIN_MS = 1000
const BACK_OFF_MAX_MS = 30_000
const BACK_OFF_JITTER = 0.2
/** Twice as long as the longest pause between two attempts to connect. */
const UNTRIED_MS = 60_000
