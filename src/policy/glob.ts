/**
 * A pattern in which `*` matches any run of characters, including an empty one. The pattern is split once. A
 * match takes time linear in the text and allocates nothing. Text has one character per byte, as headers and
 * targets do.
 */
export class Glob {
  readonly #first: string
  readonly #last: string
  readonly #middle: readonly string[]
  readonly #isExact: boolean

  /** `literals`: the text before, between and after the stars, one character per byte. */
  constructor(literals: readonly string[]) {
    this.#isExact = literals.length === 1
    this.#first = literals[0]!
    this.#last = this.#isExact ? '' : literals.at(-1)!
    const middle = literals.slice(1, -1).filter((literal) => literal !== '')
    // A fleet of many apps has tens of thousands of patterns.
    this.#middle = middle.length === 0 ? NONE : middle
  }

  /** An `ignore-case` pattern expects text in lower case. */
  static parse(pattern: string, casing: 'exact' | 'ignore-case'): Glob {
    const bytes = asBytes(pattern)
    return new Glob((casing === 'exact' ? bytes : bytes.toLowerCase()).split('*'))
  }

  matches(text: string, from = 0, to = text.length): boolean {
    const first = this.#first
    if (!text.startsWith(first, from)) return false
    if (this.#isExact) return to - from === first.length
    const last = this.#last
    const end = to - last.length
    let at = from + first.length
    if (end < at || !text.endsWith(last, to)) return false
    const middle = this.#middle
    for (let i = 0; i < middle.length; i++) {
      const literal = middle[i]!
      // The leftmost place is always right, because it leaves the most text for the literals that follow.
      const found = text.indexOf(literal, at)
      if (found === -1) return false
      at = found + literal.length
      if (at > end) return false
    }
    return true
  }
}

/** Encodes text as UTF-8, one character per byte, as it arrives from a socket. */
export function asBytes(text: string): string {
  const bytes = new TextEncoder().encode(text)
  return bytes.length === text.length ? text : Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')
}

export function matchesAny(globs: readonly Glob[], text: string, from = 0, to = text.length): boolean {
  for (let i = 0; i < globs.length; i++) if (globs[i]!.matches(text, from, to)) return true
  return false
}

const NONE: readonly string[] = []
