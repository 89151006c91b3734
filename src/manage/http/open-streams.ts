import { Refusal } from './refusal.ts'

interface StreamLimits {
  readonly perPrincipal: number
  readonly inAll: number
}

/** Counts open long-running answers (streams) of all protocols, in total and per principal. */
export class OpenStreams {
  readonly #limits: StreamLimits
  readonly #of = new Map<string, number>()
  #size = 0

  constructor(limits: StreamLimits = LIMITS) {
    this.#limits = limits
  }

  get size(): number {
    return this.#size
  }

  /**
   * Counts one more stream, and returns the function that releases it. Releasing twice is harmless. Throws a
   * Refusal if a limit is reached.
   */
  enter(principal: string): () => void {
    const refusal = this.#refusalFor(principal)
    if (refusal !== null) throw refusal
    this.#of.set(principal, (this.#of.get(principal) ?? 0) + 1)
    this.#size++
    let isOpen = true
    return () => {
      if (isOpen) this.#leave(principal)
      isOpen = false
    }
  }

  /** Like `enter`, but returns `null` if a limit is reached. */
  enterIfRoom(principal: string): (() => void) | null {
    return this.#refusalFor(principal) === null ? this.enter(principal) : null
  }

  #refusalFor(principal: string): Refusal | null {
    const { perPrincipal, inAll } = this.#limits
    if ((this.#of.get(principal) ?? 0) >= perPrincipal)
      return new Refusal('rate_limited', `this caller already has ${perPrincipal} open requests`, RETRY)
    return this.#size >= inAll
      ? new Refusal('unavailable', `all callers together already have ${inAll} open requests`, RETRY)
      : null
  }

  #leave(principal: string): void {
    this.#size--
    const left = this.#of.get(principal)! - 1
    if (left === 0) this.#of.delete(principal)
    else this.#of.set(principal, left)
  }
}

const RETRY = { headers: { 'Retry-After': '1' } }
/** Fewer than the default connection limit of the port, so other requests still get a connection. */
const LIMITS: StreamLimits = { perPrincipal: 100, inAll: 800 }
