import { Tally } from './tally.ts'

/**
 * What clients requested lately, over all their connections. A client that invents addresses and fingerprints
 * can only push out old entries: the least recently seen are removed first.
 */
export class Traffic {
  readonly #clients: Recent
  readonly #hellos: Recent

  constructor(clientsMax = CLIENTS_MAX, hellosMax = HELLOS_MAX) {
    this.#clients = new Recent(clientsMax)
    this.#hellos = new Recent(hellosMax)
  }

  /**
   * The counts of one client. Clients with the same address (of IPv6 the /64), the same hello fingerprint and
   * the same claim cannot be told apart and share their counts.
   */
  of(network: string, hello: string | null, claim: string): Tally {
    return this.#clients.get(`${network} ${hello ?? ''} ${claim}`)
  }

  /** The counts of all clients with this hello, from any address. */
  ofHello(hello: string): Tally {
    return this.#hellos.get(hello)
  }

  get size(): number {
    return this.#clients.size + this.#hellos.size
  }
}

/** Keeps at most `max` entries. The most recently used half is always among them. */
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

/** About 900 bytes each. */
const CLIENTS_MAX = 32_768
const HELLOS_MAX = 2048
