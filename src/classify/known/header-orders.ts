import { HEADER } from './index/header-index.ts'
import type { Engine, Software } from './software.ts'

/** The codes of a request's header names, in order. */
export interface ReadOrder {
  readonly order: Uint8Array
  readonly orderLength: number
}

/** The orders in which browsers send their headers. */
export class HeaderOrders {
  /**
   * By engine and protocol: for each known order, the position of each header code; 0 if the order lacks it.
   */
  readonly #orders = new Map<string, Uint8Array[]>()

  constructor(list: readonly Software[]) {
    for (const { engine, signatures } of list) {
      if (engine === null) continue
      for (const signature of signatures) {
        if (signature.type !== 'header-order') continue
        const key = `${engine} ${signature.protocol}`
        this.#orders.set(key, [...(this.#orders.get(key) ?? []), places(signature.names)])
      }
    }
  }

  /**
   * `agrees`: the headers follow a known order, in which any header may be missing. `disagrees`: they follow
   * none. `unknown`: there are too few headers, or the order they follow lacks some of them; otherwise a
   * short order would agree with anything.
   */
  compare(engine: Engine, protocol: 'h1' | 'h2', reading: ReadOrder): 'agrees' | 'disagrees' | 'unknown' {
    const orders = this.#orders.get(KEYS[engine][protocol])
    if (orders === undefined || reading.orderLength < COMPARED_MIN) return 'unknown'
    let found: 'disagrees' | 'unknown' = 'disagrees'
    for (const order of orders) {
      if (!isInOrder(order, reading)) continue
      if (placesAll(order, reading)) return 'agrees'
      found = 'unknown'
    }
    return found
  }
}

function places(names: readonly string[]): Uint8Array {
  const order = new Uint8Array(64)
  let place = 0
  for (const name of names) {
    const code = HEADER[name as keyof typeof HEADER]
    if (code !== undefined) order[code] = ++place
  }
  return order
}

function isInOrder(order: Uint8Array, reading: ReadOrder): boolean {
  let last = 0
  for (let i = 0; i < reading.orderLength; i++) {
    const place = order[reading.order[i]!]!
    if (place === 0) continue
    if (place < last) return false
    last = place
  }
  return true
}

/** Ignores headers that a user's settings can add to any order. */
function placesAll(order: Uint8Array, reading: ReadOrder): boolean {
  for (let i = 0; i < reading.orderLength; i++) {
    const code = reading.order[i]!
    if (order[code] === 0 && !ADDED.has(code)) return false
  }
  return true
}

const ADDED: ReadonlySet<number> = new Set([HEADER.dnt, HEADER['sec-gpc'], HEADER.authorization])
/** Fewer headers can be in a known order by chance. */
const COMPARED_MIN = 5
const KEYS: Readonly<Record<Engine, { readonly h1: string; readonly h2: string }>> = {
  blink: { h1: 'blink h1', h2: 'blink h2' },
  gecko: { h1: 'gecko h1', h2: 'gecko h2' },
  webkit: { h1: 'webkit h1', h2: 'webkit h2' },
  other: { h1: 'other h1', h2: 'other h2' },
}
