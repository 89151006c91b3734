import type { Plan } from './auth/principal.ts'

export type LimitedPlan = Exclude<Plan, 'unlimited'>

/** What somebody has asked for in the window that is open for them. */
export interface Counted {
  readonly points: number
  readonly endsAtMs: number
}

/** The requests of each principal of one plan, in memory, in windows that begin with the first of each. */
export class PlanCounts {
  readonly plan: LimitedPlan
  readonly windowMs: number
  /** How many there may be in a window. */
  pointsMax: number
  /** Those that began first come first. */
  readonly #windows = new Map<string, { points: number; readonly endsAtMs: number }>()

  constructor(plan: LimitedPlan, pointsMax: number, windowMs: number) {
    this.plan = plan
    this.pointsMax = pointsMax
    this.windowMs = windowMs
  }

  /** One request more, be it one too many. */
  count(id: string, nowMs: number): Counted {
    const window = this.#windows.get(id)
    if (window !== undefined && nowMs < window.endsAtMs) {
      window.points++
      return window
    }
    this.#forgetOld(nowMs)
    const begun = { points: 1, endsAtMs: nowMs + this.windowMs }
    this.put(id, begun)
    return begun
  }

  /** `null`: nothing in a window that is open. */
  find(id: string, nowMs: number): Counted | null {
    const window = this.#windows.get(id)
    return window !== undefined && nowMs < window.endsAtMs ? window : null
  }

  /** What was counted elsewhere. */
  put(id: string, { points, endsAtMs }: Counted): void {
    this.#windows.delete(id)
    this.#windows.set(id, { points, endsAtMs })
  }

  /** What this id is counted under where all plans are. */
  keyOf(id: string): string {
    return `${this.plan}:${id}`
  }

  /** `null`: it is of another plan. */
  idIn(key: string): string | null {
    const start = this.keyOf('')
    return key.startsWith(start) ? key.slice(start.length) : null
  }

  /** Until the first that is open: each begins a window before it is put at the end. */
  #forgetOld(nowMs: number): void {
    for (const [id, { endsAtMs }] of this.#windows) {
      if (nowMs < endsAtMs) return
      this.#windows.delete(id)
    }
  }
}
