import type { Sighting } from '../../plane/sighting.ts'

/**
 * Sightings that wait, oldest first, in a ring of fixed size. If it is full, a new one takes the place of the
 * newest one of the app that has the most. So an app loses nothing while another one has more.
 */
export class SightingRing {
  readonly #places: (Sighting | null)[]
  #oldest = 0
  #length = 0
  /** `null`: there is room, so nothing is counted. */
  #shares: Shares | null = null

  constructor(size: number) {
    this.#places = new Array<Sighting | null>(size).fill(null)
  }

  get length(): number {
    return this.#length
  }

  /** The Sighting that is lost because there was no room, of any app; `null`: there was. */
  add(sighting: Sighting): Sighting | null {
    if (this.#length === this.#places.length) return this.#replace(sighting)
    this.#places[this.#at(this.#length++)] = sighting
    return null
  }

  /** Removes the oldest ones, at most `max`. */
  take(max: number): Sighting[] {
    const count = Math.min(this.#length, max)
    const taken = Array.from({ length: count }, (_, i) => this.#places[this.#at(i)]!)
    for (let i = 0; i < count; i++) this.#places[this.#at(i)] = null
    this.#oldest = this.#at(count)
    this.#length -= count
    this.#shares = null
    return taken
  }

  #replace(sighting: Sighting): Sighting {
    if (this.#shares === null || this.#shares.uses === SHARES_USES) this.#shares = this.#count()
    const shares = this.#shares
    const { counts, largest } = shares
    const own = counts.get(sighting.app) ?? 0
    const most = counts.get(largest) ?? 0
    shares.uses++
    if (own + 1 >= most) return sighting
    while (this.#places[this.#at(shares.newest)]!.app !== largest) shares.newest--
    const lost = this.#places[this.#at(shares.newest)]!
    this.#places[this.#at(shares.newest)] = sighting
    counts.set(largest, most - 1)
    counts.set(sighting.app, own + 1)
    return lost
  }

  #count(): Shares {
    const counts = new Map<string, number>()
    for (let i = 0; i < this.#length; i++) {
      const { app } = this.#places[this.#at(i)]!
      counts.set(app, (counts.get(app) ?? 0) + 1)
    }
    let largest = ''
    for (const [app, count] of counts) if (count > (counts.get(largest) ?? 0)) largest = app
    return { counts, largest, newest: this.#length - 1, uses: 0 }
  }

  #at(i: number): number {
    const at = this.#oldest + i
    return at < this.#places.length ? at : at - this.#places.length
  }
}

interface Shares {
  /** How many each app has. */
  readonly counts: Map<string, number>
  readonly largest: string
  /** Behind this one, none is of the largest app. */
  newest: number
  uses: number
}

/** Counting a full ring takes some 50 µs. In between, the largest app may become smaller than another one. */
const SHARES_USES = 256
