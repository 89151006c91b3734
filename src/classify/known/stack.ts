import type { ConnectionPrint } from '../../fingerprint/print.ts'
import { DECIDED_BY_NOBODY, decidedAgents } from './decided.ts'
import { MOST, type OwnerShare, sharesOf } from './owners.ts'
import type { FingerprintSignature, Signature } from './signature.ts'
import type { Candidate, Nearest, SignatureIndex } from './index/signature-index.ts'
import type { Engine, Software } from './software.ts'

/** What the fingerprints of a connection say about the program that opened it. */
export interface Stack {
  /** Unique among the remembered stacks. */
  readonly number: number
  /** The hello has a known owner: it is equal, or differs only in what changes with session resumption. */
  readonly isKnown: boolean
  readonly kind: 'browsers' | 'libraries' | 'shared' | 'unknown'
  /** The engines of the browsers with this hello. */
  readonly engines: ReadonlySet<Engine>
  /** The engines of the browsers with parts of this hello. Empty if the hello is known. */
  readonly enginesAlike: ReadonlySet<Engine>
  /** The engines of the browsers with this HTTP/2 fingerprint. */
  readonly http2Engines: ReadonlySet<Engine>
  /** The owners of the hello, most observed first, and each one's share of the observations. */
  readonly shares: readonly OwnerShare[]
  /**
   * The agents for which this JA4 was marked as decisive, or the JA4 that the hello would have without
   * session resumption.
   */
  readonly decided: readonly Software[]
}

/** Looks up the fingerprints of each connection once. */
export class StackIndex {
  readonly #list: readonly Software[]
  readonly #index: SignatureIndex
  /** The JA4S that were seen of each Software, by its number, split into parts. */
  readonly #answers = new Map<number, readonly (readonly string[])[]>()
  readonly #decided: ReadonlyMap<string, readonly Software[]>
  readonly #ofPrint = new WeakMap<ConnectionPrint, Stack>()
  #known = new Map<string, Stack>()
  #count = 0

  constructor(list: readonly Software[], index: SignatureIndex) {
    this.#list = list
    this.#index = index
    this.#decided = decidedAgents(list, 'ja4')
    for (const [number, { signatures }] of list.entries()) {
      const seen = signatures.filter(isSeenAnswer)
      if (seen.length > 0)
        this.#answers.set(
          number,
          seen.map(({ value }) => value.split('_')),
        )
    }
  }

  stackOf(print: ConnectionPrint): Stack {
    const found = this.#ofPrint.get(print)
    if (found !== undefined) return found
    const stack = this.lookUp(print)
    this.#ofPrint.set(print, stack)
    return stack
  }

  /** For prints that are looked up only once. Clients of one kind share a result, and there are few kinds. */
  lookUp(print: ConnectionPrint): Stack {
    const ja4s = this.#answers.size === 0 ? '' : print.ja4s
    const key = `${print.ja4} ${print.stable} ${print.http2} ${ja4s}`
    const found = this.#known.get(key)
    if (found !== undefined) return found
    if (this.#known.size >= STACKS_MAX) this.#known = new Map()
    const stack = this.#look(print)
    this.#known.set(key, stack)
    return stack
  }

  #look({ ja4, unresumed, stable, http2, ja4s }: ConnectionPrint): Stack {
    const nearest = ja4 === null ? null : this.#index.nearest('ja4', ja4, stable)
    const isKnown = nearest !== null && isWhole(nearest)
    const known = isKnown ? nearest.candidates : []
    const alike = isKnown || nearest === null ? [] : this.#alike(ja4!, nearest)
    return {
      number: ++this.#count,
      isKnown,
      kind: this.#kindOf(known),
      engines: this.#enginesOf(known),
      enginesAlike: this.#enginesOf(alike),
      http2Engines: this.#enginesOf(http2 === null ? [] : this.#index.find('http2', http2, 'exact')),
      shares: sharesOf(this.#list, ja4s === null ? known : this.#narrowed(known, ja4s)),
      decided: this.#decidedFor(ja4) ?? this.#decidedFor(unresumed) ?? DECIDED_BY_NOBODY,
    }
  }

  #decidedFor(ja4: string | null): readonly Software[] | undefined {
    return ja4 === null ? undefined : this.#decided.get(ja4)
  }

  /** A browser's next version mostly keeps its ciphers, or everything except them. */
  #alike(ja4: string, nearest: Nearest): readonly Candidate[] {
    return [...nearest.candidates, ...this.#index.find('ja4', ja4, 'b')]
  }

  /**
   * JA4S is the proxy's own answer. It follows from the hello and the proxy's configuration, so it can only
   * distinguish clients that share a hello, and only if it was seen of one of them.
   */
  #narrowed(candidates: readonly Candidate[], ja4s: string): readonly Candidate[] {
    const parts = ja4s.split('_')
    const isSeen = ({ software }: Candidate) =>
      this.#answers.get(software)?.some((seen) => seen.every((part, i) => part === '*' || part === parts[i]))
    return candidates.some(isSeen) ? candidates.filter((each) => isSeen(each) ?? true) : candidates
  }

  /**
   * Automated browsers have the fingerprints of their browser, and imitators copy them, so neither tells
   * whose it is.
   */
  #kindOf(candidates: readonly Candidate[]): Stack['kind'] {
    let browsers = 0
    let libraries = 0
    for (const { software, observations } of candidates) {
      const { kind, category, isImitator } = this.#list[software]!
      if (kind === 'browser') browsers += Math.max(observations, 1)
      else if (category !== 'browser-agent' && !isImitator) libraries += Math.max(observations, 1)
    }
    if (browsers + libraries === 0) return 'unknown'
    const share = browsers / (browsers + libraries)
    return share >= MOST ? 'browsers' : share <= 1 - MOST ? 'libraries' : 'shared'
  }

  #enginesOf(candidates: readonly Candidate[]): ReadonlySet<Engine> {
    const engines = new Set<Engine>()
    for (const { software } of candidates) {
      const { engine } = this.#list[software]!
      if (engine !== null) engines.add(engine)
    }
    return engines
  }
}

/** Whether a JA4S was seen by this proxy. A JA4S that is only published is another server's answer. */
export function isSeenAnswer(signature: Signature): signature is FingerprintSignature {
  return signature.type === 'ja4s' && signature.observations > 0
}

function isWhole({ likeness }: Nearest): boolean {
  return likeness === 'exact' || likeness === 'stable'
}

const STACKS_MAX = 8192
