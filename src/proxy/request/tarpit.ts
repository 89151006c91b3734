import type { TarpitAction } from '../../policy/action.ts'

/** Delays clients. Their number is limited, because each also costs the proxy a connection. */
export class Tarpit {
  #held = 0

  get held(): number {
    return this.#held
  }

  /**
   * Calls `then` after the delay. Returns a function that releases a client which disconnects earlier. `null`
   * if too many are held already; this client is then not held.
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
