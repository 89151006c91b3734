import { Refusal } from '../refusal.ts'

export interface StreamLimits {
  readonly perPrincipal: number
  readonly inAll: number
}

/** How many are answered at once: each may take as long as a stream does. */
export class Streams {
  readonly #limits: StreamLimits
  readonly #open = new Map<string, number>()
  #inAll = 0

  constructor(limits: StreamLimits = LIMITS) {
    this.#limits = limits
  }

  get inAll(): number {
    return this.#inAll
  }

  /** One more, until what it gives is called. Throws a Refusal where there are too many. */
  enter(principal: string): () => void {
    const { perPrincipal, inAll } = this.#limits
    const open = this.#open.get(principal) ?? 0
    if (open >= perPrincipal)
      throw new Refusal('rate_limited', `${perPrincipal} requests of this caller are open already`, RETRY)
    if (this.#inAll >= inAll)
      throw new Refusal('unavailable', `${inAll} requests are open already, of all callers`, RETRY)
    this.#open.set(principal, open + 1)
    this.#inAll++
    let isOpen = true
    return () => {
      if (isOpen) this.#leave(principal)
      isOpen = false
    }
  }

  #leave(principal: string): void {
    this.#inAll--
    const open = this.#open.get(principal)! - 1
    if (open === 0) this.#open.delete(principal)
    else this.#open.set(principal, open)
  }
}

const RETRY = { headers: { 'Retry-After': '1' } }
/** Of the connections that the port takes, unless it is told otherwise, the others are left some. */
const LIMITS: StreamLimits = { perPrincipal: 100, inAll: 800 }
