/**
 * The ids that were taken of one process and second, as ranges. A process numbers its ids,
 * so a few ranges cover thousands.
 */
export class PlaceRanges {
  /** The first and last place of each range, ascending. */
  readonly #bounds: number[]

  constructor(text = '[]') {
    this.#bounds = JSON.parse(text) as number[]
  }

  /** `crowded`: there are more ranges than any proxy's clock can cause. */
  add(place: number): 'fresh' | 'taken' | 'crowded' {
    const bounds = this.#bounds
    const next = this.#firstAfter(place)
    const end = bounds[next - 1]
    if (end !== undefined && place <= end) return 'taken'
    const joinsBefore = end === place - 1
    const joinsNext = bounds[next] === place + 1
    if (joinsBefore && joinsNext) bounds.splice(next - 1, 2)
    else if (joinsBefore) bounds[next - 1] = place
    else if (joinsNext) bounds[next] = place
    else if (bounds.length === BOUNDS_MAX) return 'crowded'
    else bounds.splice(next, 0, place, place)
    return 'fresh'
  }

  get text(): string {
    return JSON.stringify(this.#bounds)
  }

  /** The index of the first range that begins after the place. */
  #firstAfter(place: number): number {
    const bounds = this.#bounds
    let low = 0
    let high = bounds.length / 2
    // Fast path: most ids come in order.
    if (high > 0 && bounds[bounds.length - 2]! <= place) return bounds.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (bounds[2 * middle]! <= place) low = middle + 1
      else high = middle
    }
    return 2 * low
  }
}

/** The row that stores an id, and its place in the row. */
interface IdPlace {
  readonly slot: string
  readonly place: number
}

/** `null`: the id does not have a proxy's format (UUIDv7: time, counter, process bits). */
export function idPlace(id: string): IdPlace | null {
  if (!ID.test(id)) return null
  const ms = idTimeMs(id)
  const counter = Number.parseInt(id.slice(15, 18) + id.slice(20, 23), 16)
  const second = Math.floor(ms / 1000)
  return { slot: `${id.slice(24)}-${second}`, place: (ms - second * 1000) * COUNTERS + counter }
}

/** When the proxy made this id, by its clock. */
export function idTimeMs(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/
const COUNTERS = 0x100_0000
/**
 * Four ranges for each millisecond. A proxy's clock causes some ten a second,
 * and each missing batch one more.
 */
const BOUNDS_MAX = 2 * 4000
