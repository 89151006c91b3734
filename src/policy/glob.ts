/**
 * A pattern in which `*` stands for any run of characters, also none. It is taken apart once; a match takes time linear
 * in the text and allocates nothing. Text is one character a byte, as headers and targets are.
 */
export class Glob {
  readonly #first: string
  readonly #last: string
  readonly #middle: readonly string[]
  readonly #isExact: boolean

  /** `literals`: what stands before, between and behind the stars, one character a byte. */
  constructor(literals: readonly string[]) {
    this.#isExact = literals.length === 1
    this.#first = literals[0]!
    this.#last = this.#isExact ? '' : literals.at(-1)!
    this.#middle = literals.slice(1, -1).filter((literal) => literal !== '')
  }

  /** A pattern in any case (`ignore-case`) is for text that is in lower case. */
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
      // The leftmost place is never the wrong one: it leaves the most to those that follow.
      const found = text.indexOf(literal, at)
      if (found === -1) return false
      at = found + literal.length
      if (at > end) return false
    }
    return true
  }
}

/** Text as its UTF-8 bytes, a character each, as it would come from a socket. */
export function asBytes(text: string): string {
  const bytes = new TextEncoder().encode(text)
  return bytes.length === text.length ? text : Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')
}

/** Whether one of them matches. */
export function matchesAny(globs: readonly Glob[], text: string, from = 0, to = text.length): boolean {
  for (let i = 0; i < globs.length; i++) if (globs[i]!.matches(text, from, to)) return true
  return false
}
