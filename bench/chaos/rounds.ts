import { setTimeout as wait } from 'node:timers/promises'
import type { Trouble } from '../soak/ledger.ts'
import type { Failure, Seen } from '../soak/messages.ts'
import type { Random } from '../soak/random.ts'
import type { Disturbance } from './disturbance.ts'

/** One disturbance, or several at once, from its begin until all was well again. */
export interface Round extends Trouble {
  readonly kinds: readonly string[]
  readonly disturbances: readonly Disturbance[]
  /** How long it took once it was over. */
  readonly recoveredMs: number
}

/** What goes through them. */
export interface Disturbed<Kind> {
  readonly random: Random
  readonly problems: string[]
  /** `isBeside`: it is one of several at once. */
  disturbance(kind: Kind, isBeside: boolean): Disturbance
  /** What is still missing after that time before all is well; `null`: nothing. */
  missing(withinMs: number): Promise<string | null>
}

/** One after the other: first each kind by itself, in any order, then also two at once. */
export class Rounds<Kind extends string> {
  readonly done: Round[] = []
  readonly #disturbed: Disturbed<Kind>
  readonly #random: Random
  readonly #kinds: readonly Kind[]
  #turn: Kind[] = []
  #turns = 0

  constructor(disturbed: Disturbed<Kind>, kinds: readonly Kind[]) {
    this.#disturbed = disturbed
    this.#random = disturbed.random
    this.#kinds = kinds
  }

  /** Every kind has had its turn. */
  get hasHadAll(): boolean {
    return this.#turns > 0 && this.#turn.length === 0
  }

  async next(): Promise<Round> {
    const first = this.#nextKind()
    const isPair = this.#turns > 1 && this.#random.chance(PAIR_SHARE) && this.#turn.length > 0
    const kinds = isPair ? [first, this.#nextKind()] : [first]
    const round = await this.#round(kinds)
    this.done.push(round)
    return round
  }

  #nextKind(): Kind {
    if (this.#turn.length === 0) {
      this.#turns++
      const left = [...this.#kinds]
      while (left.length > 0) this.#turn.push(...left.splice(this.#random.between(0, left.length - 1), 1))
    }
    return this.#turn.shift()!
  }

  async #round(kinds: readonly Kind[]): Promise<Round> {
    const disturbances = kinds.map((kind) => this.#disturbed.disturbance(kind, kinds.length > 1))
    const name = disturbances
      .map(({ detail }, at) => `${kinds[at]}${detail === '' ? '' : ` (${detail})`}`)
      .join(' with ')
    const fromMs = Date.now()
    for (const disturbance of disturbances) await disturbance.begin()
    await wait(Math.max(...disturbances.map(({ holdMs }) => holdMs)))
    for (const disturbance of disturbances.toReversed()) await disturbance.end()
    const overMs = Date.now()
    const withinMs = Math.max(...disturbances.map(({ recoversMs }) => recoversMs))
    const missing = await this.#disturbed.missing(withinMs)
    if (missing !== null) this.#disturbed.problems.push(`${name}: ${withinMs} ms after it, ${missing}`)
    const toMs = Date.now()
    return {
      ...{ name, kinds, disturbances, fromMs, toMs: toMs + HEARD_MS, recoveredMs: toMs - overMs },
      accountsFor: (failure: Failure, seen: Seen) =>
        disturbances.some((each) => each.accountsFor(failure, seen)),
    }
  }
}

const PAIR_SHARE = 0.4
/** Two processes note the same moment. */
const HEARD_MS = 250
