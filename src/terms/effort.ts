/**
 * How much may be worked out. Patterns can be written so that comparing them takes long, and they may come from an app or
 * from the administrator of a team. One unit takes about a microsecond at most.
 */
export class Effort {
  #left: number

  constructor(most = EFFORT_MAX) {
    this.#left = most
  }

  /** `false`: too much was worked out already. */
  spend(units: number): boolean {
    this.#left -= units
    return this.#left >= 0
  }

  get isOver(): boolean {
    return this.#left < 0
  }
}

const EFFORT_MAX = 1_000_000
