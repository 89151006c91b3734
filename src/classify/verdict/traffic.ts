import { Tally } from './tally.ts'

/**
 * What clients have asked for lately, over all their connections. Whoever makes up addresses and fingerprints only pushes
 * out what was known: who was not seen for longest is forgotten first.
 */
export class Traffic {
  readonly #clients: Recent
  readonly #hellos: Recent

  constructor(clientsMax = CLIENTS_MAX, hellosMax = HELLOS_MAX) {
    this.#clients = new Recent(clientsMax)
    this.#hellos = new Recent(hellosMax)
  }

  /**
   * Of one client, and whoever cannot be told from it: by its address (of IPv6 the /64), the fingerprint of its hello, and
   * what it says to be, in one of few words.
   */
  of(network: string, hello: string | null, claim: string): Tally {
    return this.#clients.get(`${network} ${hello ?? ''} ${claim}`)
  }

  /** Of all who have this hello, wherever they are. */
  ofHello(hello: string): Tally {
    return this.#hellos.get(hello)
  }

  get size(): number {
    return this.#clients.size + this.#hellos.size
  }
}

/** At most `max` of them, and among them the half of that many that were asked for last. */
class Recent {
  readonly #half: number
  #newer = new Map<string, Tally>()
  #older = new Map<string, Tally>()

  constructor(max: number) {
    this.#half = max >> 1
  }

  get(key: string): Tally {
    const found = this.#newer.get(key)
    if (found !== undefined) return found
    const tally = this.#older.get(key) ?? new Tally()
    this.#older.delete(key)
    if (this.#newer.size >= this.#half) {
      this.#older = this.#newer
      this.#newer = new Map()
    }
    this.#newer.set(key, tally)
    return tally
  }

  get size(): number {
    return this.#newer.size + this.#older.size
  }
}

/** Some 900 bytes each. */
const CLIENTS_MAX = 32_768
const HELLOS_MAX = 2048
