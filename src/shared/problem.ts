import { didYouMean } from './did-you-mean.ts'
import { Fault } from './fault.ts'

/** One problem of a document such as a policy or a signature file. */
export interface DocumentProblem {
  /** JSON pointer to the value (RFC 6901). */
  readonly pointer: string
  /** The named item around it, such as `rule "api"`; `null`: the item has no name, or there is no item. */
  readonly within: string | null
  readonly what: string
}

/** An unusable document, with all problems. */
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

/**
 * A value of unknown type with its position in a document. Problems are collected and reported at the end.
 */
export class Place {
  readonly value: unknown
  readonly #document: ReadDocument
  /**
   * The parent and this value's name in it; `null` for the document itself. Pointers are built on demand,
   * because most are never needed.
   */
  readonly #parent: Place | null
  readonly #name: string | number
  readonly #within: string | null

  /** `isFromLater`: a later version may have written the document, so unknown members are ignored. */
  static of(value: unknown, problems: DocumentProblem[], isFromLater = false): Place {
    return new Place(value, { problems, isFromLater }, null, '', null)
  }

  private constructor(
    value: unknown,
    document: ReadDocument,
    parent: Place | null,
    name: string | number,
    within: string | null,
  ) {
    this.value = value
    this.#document = document
    this.#parent = parent
    this.#name = name
    this.#within = within
  }

  refuse(what: string): null {
    this.#document.problems.push(this.problem(what))
    return null
  }

  expected(what: string): null {
    return this.refuse(`is ${shown(this.value)}; expected ${what}`)
  }

  /** A problem at this place that does not count against the document. */
  problem(what: string): DocumentProblem {
    return { pointer: this.#pointer, within: this.#within, what }
  }

  /** The same place, inside a named item: `rule "api"`. */
  inside(within: string): Place {
    return new Place(this.value, this.#document, this.#parent, this.#name, within)
  }

  get isMapping(): boolean {
    return typeof this.value === 'object' && this.value !== null && !Array.isArray(this.value)
  }

  get isEmpty(): boolean {
    return this.isMapping && Object.keys(this.value as object).length === 0
  }

  /** The members of an object. Reports a value that is not an object, and members that are not `known`. */
  members(known: readonly string[]): ReadonlyMap<string, Place> {
    const members = this.entries()
    for (const [name, member] of members) {
      if (!known.includes(name) && !this.#document.isFromLater)
        member.refuse(`unknown field${didYouMean(name, known)}`)
    }
    return members
  }

  /** The same with any member names. */
  entries(): ReadonlyMap<string, Place> {
    if (!this.isMapping) {
      this.expected('a mapping')
      return new Map()
    }
    const members = new Map<string, Place>()
    for (const [name, member] of Object.entries(this.value as object))
      members.set(name, this.#at(name, member))
    return members
  }

  /** The items of a list; a single value counts as a list of one. */
  items(): readonly Place[] {
    const { value } = this
    if (!Array.isArray(value)) return [this]
    if (value.length === 0) this.refuse('is an empty list; add an item or remove it')
    if (value.length > ITEMS_MAX) {
      this.refuse(`has ${value.length} items; at most ${ITEMS_MAX}`)
      return []
    }
    return Array.from(value, (item: unknown, index) => this.#at(index, item))
  }

  text(what: string, lengthMax = TEXT_LENGTH_MAX): string | null {
    const { value } = this
    if (typeof value !== 'string' || value === '') return this.expected(what)
    return value.length > lengthMax ? this.refuse(`is longer than ${lengthMax} characters`) : value
  }

  choice<Choice extends string | number>(choices: readonly Choice[]): Choice | null {
    const { value } = this
    const found = choices.find((choice) => choice === value)
    if (found !== undefined) return found
    const near = typeof value === 'string' ? didYouMean(value, choices.map(String)) : ''
    return this.expected(`${choices.join(', ')}${near}`)
  }

  boolean(): boolean | null {
    const { value } = this
    return typeof value === 'boolean' ? value : this.expected('true or false')
  }

  integer(min: number, max: number): number | null {
    const { value } = this
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return value
    return this.expected(`a whole number from ${min} to ${max}`)
  }

  #at(name: string | number, value: unknown): Place {
    return new Place(value, this.#document, this, name, this.#within)
  }

  get #pointer(): string {
    if (this.#parent === null) return ''
    const token = String(this.#name).replaceAll('~', '~0').replaceAll('/', '~1')
    return `${this.#parent.#pointer}/${token}`
  }
}

interface ReadDocument {
  readonly problems: DocumentProblem[]
  readonly isFromLater: boolean
}

/** A value as quoted in a problem. */
export function shown(value: unknown): string {
  if (value === undefined || value === null) return 'empty'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a mapping'
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value)
  return text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text
}

/** The largest crawlers publish some 2,000 address ranges. */
const ITEMS_MAX = 100_000
/**
 * A matched header cannot be longer than the headers of a request, and few patterns are longer than a line.
 */
const TEXT_LENGTH_MAX = 1024
const SHOWN_LENGTH_MAX = 60
/** More would not help. */
const PROBLEMS_SAID_MAX = 100
