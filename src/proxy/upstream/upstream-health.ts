import type { UpstreamFailure } from './upstream-stream.ts'

/** The thresholds for the health of a target. */
export interface HealthSettings {
  /** Failures in a row that take it out. */
  readonly unhealthyAfter: number
  /** Successful active checks in a row that bring it back. */
  readonly healthyAfter: number
}

/** The last failure of a target. `check`: an active check failed. */
export type TargetFailure = UpstreamFailure | 'check'

/**
 * Decides whether a target may get requests. Failures in a row take it out for a growing time. After that,
 * one request at a time tries it until one is answered. Active checks, if configured, take it out and bring
 * it back independently.
 */
export class TargetHealth {
  readonly #settings: HealthSettings
  #failures = 0
  #backOffMs = BACK_OFF_MIN_MS
  /** It gets no requests until then. 0: it is not out. */
  #outUntilMs = 0
  #isTried = false
  #checksInARow = 0
  #isCheckedWell = true
  /** Successful checks since the last failed request. */
  #checksSinceFailure = 0
  #lastFailure: TargetFailure | null = null
  #lastFailedMs = 0

  constructor(settings: HealthSettings) {
    this.#settings = settings
  }

  get isHealthy(): boolean {
    return this.#outUntilMs === 0 && this.#isCheckedWell
  }

  /** The last failure. `null`: it has not failed. */
  get lastFailure(): TargetFailure | null {
    return this.#lastFailure
  }

  /** Until when failed requests keep it out. 0: they do not. */
  get outUntilMs(): number {
    return this.#outUntilMs
  }

  /**
   * Whether this target is a reason to send requests to this proxy. A target without recent failures counts
   * even if it is out, because without requests nothing would notice its recovery.
   */
  isWorthTrying(nowMs: number): boolean {
    return this.isHealthy || (this.#isCheckedWell && nowMs - this.#lastFailedMs >= UNTRIED_MS)
  }

  /** Whether it may get a request now. After a pause it gets one at a time. */
  mayTry(nowMs: number): boolean {
    if (!this.#isCheckedWell) return false
    return this.#outUntilMs === 0 || (nowMs >= this.#outUntilMs && !this.#isTried)
  }

  /** A request is being sent. */
  tried(): void {
    if (this.#outUntilMs !== 0) this.#isTried = true
  }

  /** The request proves nothing about the target: the client disconnected, or the failure is ours. */
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

  /** Returns `true` if this failure took it out. `chance` in [0, 1) spreads the retries of many proxies. */
  failed(nowMs: number, chance: number, failure: UpstreamFailure): boolean {
    this.#isTried = false
    this.#lastFailure = failure
    this.#lastFailedMs = nowMs
    this.#checksSinceFailure = 0
    this.#failures++
    const wasOut = this.#outUntilMs !== 0
    // Requests from before it was taken out prove nothing new.
    if (wasOut && nowMs < this.#outUntilMs) return false
    if (!wasOut && this.#failures < this.#settings.unhealthyAfter) return false
    this.#outUntilMs = nowMs + this.#backOffMs * (1 - BACK_OFF_JITTER * chance)
    this.#backOffMs = Math.min(this.#backOffMs * 2, BACK_OFF_MAX_MS)
    return !wasOut
  }

  /** Takes the result of an active check. Returns `true` if it changes the state. */
  checked(isWell: boolean): boolean {
    if (isWell === this.#isCheckedWell) {
      this.#checksInARow = 0
      return isWell && this.#checkedWellAgain()
    }
    const needed = isWell ? this.#settings.healthyAfter : this.#settings.unhealthyAfter
    if (++this.#checksInARow < needed) return false
    this.#checksInARow = 0
    this.#isCheckedWell = isWell
    // A successful check counts like a successful request.
    if (isWell) this.succeeded()
    else this.#lastFailure = 'check'
    return true
  }

  /** Checks bring back a target that requests took out, if no request has failed since. */
  #checkedWellAgain(): boolean {
    if (this.#outUntilMs === 0 || ++this.#checksSinceFailure < this.#settings.healthyAfter) return false
    this.succeeded()
    return true
  }
}

/** Long enough for an app to restart, short enough to go unnoticed. */
const BACK_OFF_MIN_MS = 1000
const BACK_OFF_MAX_MS = 30_000
const BACK_OFF_JITTER = 0.2
/** Twice the longest pause between two connection attempts. */
const UNTRIED_MS = 60_000
