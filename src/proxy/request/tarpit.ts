import type { TarpitAction } from '../../policy/action.ts'

/** Holds clients that are to be slowed down; so many at a time, for each costs us a connection too. */
export class Tarpit {
  #held = 0

  get held(): number {
    return this.#held
  }

  /**
   * Calls `then` after the delay. Returns what lets go of a client that does not wait for it; `null` where too many are
   * held already, and this one is not.
   */
  hold(action: TarpitAction, then: () => void): (() => void) | null {
    if (this.#held >= action.connectionsMax) return null
    this.#held++
    let isHeld = true
    const letGo = () => {
      if (!isHeld) return
      isHeld = false
      this.#held--
      clearTimeout(timer)
    }
    const timer = setTimeout(() => {
      letGo()
      then()
    }, action.delayMs)
    return letGo
  }
}
