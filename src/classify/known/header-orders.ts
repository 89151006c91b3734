import { HEADER } from './index/header-index.ts'
import type { Engine, Software } from './software.ts'

/** Header names of a request as codes, in their order. */
export interface ReadOrder {
  readonly order: Uint8Array
  readonly orderLength: number
}

/** In which order browsers send their headers. */
export class HeaderOrders {
  /** By engine and protocol: for each known order, the place of each header by its code; 0 where it has none. */
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
   * It agrees if it is one of the known orders, with any header left out, and disagrees if it is none of them. It can't be
   * told of a few headers, nor where an order says nothing of some that were sent: a short one would agree with anything.
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

/** But for what a visitor's settings add to any order. */
function placesAll(order: Uint8Array, reading: ReadOrder): boolean {
  for (let i = 0; i < reading.orderLength; i++) {
    const code = reading.order[i]!
    if (order[code] === 0 && !ADDED.has(code)) return false
  }
  return true
}

const ADDED: ReadonlySet<number> = new Set([HEADER.dnt, HEADER['sec-gpc'], HEADER.authorization])
/** Fewer headers are in some order by chance. */
const COMPARED_MIN = 5
const KEYS: Readonly<Record<Engine, { readonly h1: string; readonly h2: string }>> = {
  blink: { h1: 'blink h1', h2: 'blink h2' },
  gecko: { h1: 'gecko h1', h2: 'gecko h2' },
  webkit: { h1: 'webkit h1', h2: 'webkit h2' },
  other: { h1: 'other h1', h2: 'other h2' },
}
