import { didYouMean } from './did-you-mean.ts'
import { Fault } from './fault.ts'

/** One thing that is wrong with a document: a policy, a file of signatures. */
export interface DocumentProblem {
  /** Where it is, as a JSON pointer (RFC 6901). */
  readonly pointer: string
  /** The named thing it is in, like `rule "api"`; `null` where it is in none, or in one without a name. */
  readonly within: string | null
  readonly what: string
}

/** A document that cannot be used, with all that is wrong with it. */
export class DocumentFault extends Fault {
  readonly problems: readonly DocumentProblem[]

  constructor(code: `${Uppercase<string>}_INVALID`, problems: readonly DocumentProblem[]) {
    const more = problems.length - PROBLEMS_SAID_MAX
    const lines = problems.slice(0, PROBLEMS_SAID_MAX).map(problemText)
    super(code, [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n'))
    this.problems = problems
  }
}

export function problemText({ pointer, within, what }: DocumentProblem): string {
  const place = pointer.slice(1).replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~')
  return [within ?? '', place, what].filter((part) => part !== '').join(': ')
}

/** A value of unknown type and its place in what is being read; what is wrong with it is kept for the end. */
export class Place {
  readonly value: unknown
  readonly #problems: DocumentProblem[]
  readonly #pointer: string
  readonly #within: string | null
  readonly #isFromLater: boolean

  /** `isFromLater`: a later version may have written it, and what this one does not know of is passed over. */
  constructor(
    value: unknown,
    problems: DocumentProblem[],
    pointer = '',
    within: string | null = null,
    isFromLater = false,
  ) {
    this.value = value
    this.#problems = problems
    this.#pointer = pointer
    this.#within = within
    this.#isFromLater = isFromLater
  }

  refuse(what: string): null {
    this.#problems.push({ pointer: this.#pointer, within: this.#within, what })
    return null
  }

  /** The same place, in something that has a name: `rule "api"`. */
  inside(within: string): Place {
    return new Place(this.value, this.#problems, this.#pointer, within, this.#isFromLater)
  }

  get isMapping(): boolean {
    return typeof this.value === 'object' && this.value !== null && !Array.isArray(this.value)
  }

  get isEmpty(): boolean {
    return this.isMapping && Object.keys(this.value as object).length === 0
  }

  /** The places of an object's members. Refuses what is no object, and members that are not `known`. */
  members(known: readonly string[]): ReadonlyMap<string, Place> {
    const members = this.entries()
    for (const [name, member] of members) {
      if (!known.includes(name) && !this.#isFromLater) member.refuse(`is not known${didYouMean(name, known)}`)
    }
    return members
  }

  /** The same, whatever they are called. */
  entries(): ReadonlyMap<string, Place> {
    if (!this.isMapping) {
      this.refuse(`is ${shown(this.value)}; it takes a mapping`)
      return new Map()
    }
    return new Map(
      Object.entries(this.value as object).map(([name, member]) => [name, this.#at(name, member)]),
    )
  }

  /** The places of a list's items; of one value that is no list, its own. */
  items(): readonly Place[] {
    const { value } = this
    if (!Array.isArray(value)) return [this]
    if (value.length === 0) this.refuse('is an empty list, which nothing is in; leave it out')
    if (value.length > ITEMS_MAX) {
      this.refuse(`has ${value.length} items; at most ${ITEMS_MAX}`)
      return []
    }
    return Array.from(value, (item: unknown, index) => this.#at(String(index), item))
  }

  text(what: string, lengthMax = TEXT_LENGTH_MAX): string | null {
    const { value } = this
    if (typeof value !== 'string' || value === '') return this.refuse(`is ${shown(value)}; it takes ${what}`)
    return value.length > lengthMax ? this.refuse(`is longer than ${lengthMax} characters`) : value
  }

  choice<Choice extends string | number>(choices: readonly Choice[]): Choice | null {
    const { value } = this
    const found = choices.find((choice) => choice === value)
    if (found !== undefined) return found
    const near = typeof value === 'string' ? didYouMean(value, choices.map(String)) : ''
    return this.refuse(`is ${shown(value)}; it takes ${choices.join(', ')}${near}`)
  }

  boolean(): boolean | null {
    const { value } = this
    return typeof value === 'boolean' ? value : this.refuse(`is ${shown(value)}; it takes true or false`)
  }

  integer(min: number, max: number): number | null {
    const { value } = this
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return value
    return this.refuse(`is ${shown(value)}; it takes a whole number from ${min} to ${max}`)
  }

  #at(name: string, value: unknown): Place {
    const token = name.replaceAll('~', '~0').replaceAll('/', '~1')
    return new Place(value, this.#problems, `${this.#pointer}/${token}`, this.#within, this.#isFromLater)
  }
}

/** A value as it is quoted in a problem. */
export function shown(value: unknown): string {
  if (value === undefined || value === null) return 'empty'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a mapping'
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value)
  return text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text
}

/** The published address ranges of the largest crawlers are some 2,000. */
const ITEMS_MAX = 100_000
/** No header that is matched may be longer than the headers of a request, and few patterns are longer than a line. */
const TEXT_LENGTH_MAX = 1024
const SHOWN_LENGTH_MAX = 60
/** More are no help to anybody. */
const PROBLEMS_SAID_MAX = 100
