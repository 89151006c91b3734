/**
 * Strings that a pattern takes longest to refuse, made of the pattern: what it repeats, very often, behind what comes
 * before it and in front of what it does not end with. What backtracks does it there.
 */
export function attacksOn(pattern: RegExp): readonly Attack[] {
  const { repeated, starts } = new Pieces(pattern)
  const found = new Map<string, Attack>()
  const add = (start: string, pump: string) => {
    for (const end of ENDS) found.set(JSON.stringify([start, pump, end]), { start, pump, end })
  }
  for (const [index, { before, unit }] of repeated.entries()) {
    const head = before.slice(-HEAD_MAX)
    for (const pump of [unit, head + unit]) for (const start of ['', head]) add(start, pump)
    // What stands between two that are repeated can belong to either.
    for (const { before: later } of repeated.slice(index + 1))
      if (later.startsWith(before) && later !== before) add(before, later.slice(before.length))
  }
  // What begins again and again: each place may be searched to the end.
  for (const start of starts) add('', start)
  return [...found.values()]
}

/** A text that can be made as long as one likes. */
export interface Attack {
  readonly start: string
  readonly pump: string
  readonly end: string
}

export function textOf({ start, pump, end }: Attack, length: number): string {
  return (
    start + pump.repeat(Math.max(1, Math.floor((length - start.length - end.length) / pump.length))) + end
  )
}

interface Repeated {
  /** What a text has that has come to it. */
  readonly before: string
  /** What is repeated, once. */
  readonly unit: string
}

/** A reader of patterns that is as exact as it must be to write texts that they nearly take. */
class Pieces {
  readonly repeated: Repeated[] = []
  readonly starts: readonly string[]
  readonly #source: string
  readonly #flags: string
  #at = 0

  constructor({ source, flags }: RegExp) {
    this.#source = source
    this.#flags = flags.replaceAll(/[gy]/g, '')
    const samples = this.#choices('')
    this.starts = [...new Set(samples.flatMap((sample) => [sample, sample.slice(0, -1)]))].filter(
      (sample) => sample !== '',
    )
  }

  /** Texts that the alternatives take, of each one. */
  #choices(before: string): readonly string[] {
    const samples: string[] = []
    do samples.push(this.#sequence(before))
    while (this.#takes('|'))
    return samples
  }

  #sequence(before: string): string {
    let text = ''
    while (this.#at < this.#source.length && !this.#sees('|') && !this.#sees(')')) {
      const from = this.#at
      const units = this.#element(before + text)
      const { max } = this.#quantifier()
      const known = units[0] ?? ''
      if (max >= OFTEN)
        for (const unit of units) if (unit !== '') this.repeated.push({ before: before + text, unit })
      // What may be left out is there, so that what comes behind it has something before it.
      text += known
      if (this.#at === from) throw new Error(`cannot read ${this.#source} at ${from}`)
    }
    return text
  }

  #element(before: string): readonly string[] {
    if (this.#takes('(')) return this.#group(before)
    if (this.#sees('[')) return this.#members(this.#class())
    const [char = ''] = this.#source.slice(this.#at)
    this.#at += char.length
    if (char === '^' || char === '$') return ['']
    if (char === '.') return ['a', ' ']
    if (char !== '\\') return [char]
    return this.#escape()
  }

  #group(before: string): readonly string[] {
    const kind = /^\?(?:[:=!]|<[=!]|<\w+>)/.exec(this.#source.slice(this.#at))?.[0] ?? ''
    this.#at += kind.length
    const samples = this.#choices(before)
    if (!this.#takes(')')) throw new Error(`no end of a group in ${this.#source}`)
    return /[=!]/.test(kind) ? [''] : samples
  }

  #escape(): readonly string[] {
    const [raw = ''] = /^(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|k<\w+>|.)/s.exec(
      this.#source.slice(this.#at),
    ) ?? ['']
    this.#at += raw.length
    if (raw === 'b' || raw === 'B' || /^(?:[1-9]|k<)/.test(raw)) return ['']
    return this.#members(`\\${raw}`)
  }

  #class(): string {
    const from = this.#at
    for (this.#at++; !this.#sees(']'); this.#at++) if (this.#sees('\\')) this.#at++
    this.#at++
    return this.#source.slice(from, this.#at)
  }

  /** Some characters that it takes, of different kinds. */
  #members(raw: string): readonly string[] {
    const takes = new RegExp(`^${raw}$`, this.#flags)
    return CHARACTERS.filter((char) => takes.test(char)).slice(0, MEMBERS_MAX)
  }

  #quantifier(): { readonly max: number } {
    const [raw, , , max] = /^(?:[*+?]|\{(\d+)(,(\d*))?\})\??/.exec(this.#source.slice(this.#at)) ?? ['']
    this.#at += raw.length
    if (raw === '') return { max: 1 }
    if (raw.startsWith('*') || raw.startsWith('+')) return { max: Number.POSITIVE_INFINITY }
    if (raw.startsWith('?')) return { max: 1 }
    return { max: raw.includes(',') ? Number(max || OFTEN) : Number(/\d+/.exec(raw)![0]) }
  }

  #sees(char: string): boolean {
    return this.#source[this.#at] === char
  }

  #takes(char: string): boolean {
    if (!this.#sees(char)) return false
    this.#at++
    return true
  }
}

/** Letters, figures, spaces and signs; what patterns know of comes first. */
const CHARACTERS = [
  ...['a', '0', ' ', '-', '.', '/', '"', ',', ';', '=', '\\', 'A', '_', '\t', '\n', '\r', ':', '*', '%', '('],
  ...[
    '{',
    '[',
    '<',
    '@',
    '+',
    '!',
    '#',
    '$',
    '&',
    "'",
    '?',
    '^',
    '`',
    '|',
    '~',
    ')',
    ']',
    '}',
    '>',
    'f',
    'x',
    'z',
  ],
  ...['\u0000', '\u00ff', '\u0301', '\u202e', 'é', '語'],
]
const MEMBERS_MAX = 3
const HEAD_MAX = 40
const ENDS = ['', '\u0001', '!', '"', '\n', ' x', '/']
/** So often repeated it is worth a try. */
const OFTEN = 20
