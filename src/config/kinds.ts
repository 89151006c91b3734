import { Fault } from '../shared/fault.ts'
import { type DocumentProblem, Place } from '../shared/problem.ts'
import { parseDurationMs } from '../policy/duration.ts'

/** How the value of a setting is written, and its type in the program. */
export interface Kind<Value> {
  /** Shown in the documentation. */
  readonly takes: string
  /** A file or folder. In a settings file, the path is relative to that file. */
  readonly isPath?: true
  /** Reads a value from a file. Reports a problem at the place if the value is invalid. */
  read(place: Place): Value | null
  /** Converts the text of a variable or flag to the value a file would have. */
  fromText(text: string): unknown
}

/** A kind that is written as text. */
export function written<Value>({
  takes,
  expected = takes,
  hint = none,
  problem = noProblem,
  parse,
}: {
  readonly takes: string
  /** For the message about an invalid value, if it needs more than `takes`. */
  readonly expected?: string
  /** Follows `expected` in that message. */
  readonly hint?: (text: string) => string
  /** Why a text is invalid, if there is more to say than what is expected. */
  readonly problem?: (text: string) => string | null
  /** `null`: invalid. */
  readonly parse: (text: string) => Value | null
}): Kind<Value> {
  return {
    takes,
    read(place) {
      const { value: text } = place
      if (typeof text !== 'string') return place.expected(expected)
      const special = problem(text)
      return special !== null ? place.refuse(special) : (parse(text) ?? place.expected(expected + hint(text)))
    },
    fromText: same,
  }
}

/** Throws a Fault that says what is wrong. */
export function readValue<Value>(kind: Kind<Value>, raw: unknown): Value {
  const problems: DocumentProblem[] = []
  const value = kind.read(Place.of(raw, problems))
  const [first] = problems
  if (first !== undefined) throw new Fault('CONFIG_INVALID', first.what)
  return value as Value
}

export const text: Kind<string> = written({
  takes: 'text',
  problem: (given) => (CONTROL.test(given) ? 'contains a control character' : null),
  parse: (given) => (given === '' ? null : given),
})

export const path: Kind<string> = { ...text, takes: 'path', isPath: true }

/** The path of a request, as it is sent. */
export const targetPath: Kind<string> = written({
  takes: 'a path, like /license.xml',
  problem: (given) => (/^\/[\w.~/-]{1,255}$/.test(given) ? null : 'is not a plain path, like /license.xml'),
  parse: (given) => given,
})

export const boolean: Kind<boolean> = {
  takes: 'true, false',
  read: (place) => place.boolean(),
  fromText: (given) => (given === 'true' ? true : given === 'false' ? false : given),
}

export function integer(min: number, max: number): Kind<number> {
  return {
    takes: `${min} to ${max}`,
    read: (place) => place.integer(min, max),
    fromText: (given) => (/^\d{1,15}$/.test(given) ? Number(given) : given),
  }
}

/** A fraction from 0 to 1. */
export const share: Kind<number> = {
  takes: '0 to 1',
  read(place) {
    const { value } = place
    return typeof value === 'number' && value >= 0 && value <= 1
      ? value
      : place.expected('a number from 0 to 1')
  },
  fromText: (given) => (/^\d(?:\.\d{1,12})?$/.test(given) ? Number(given) : given),
}

/** In milliseconds. If `min` is `0`, the setting defines whether 0 means "forever" or "at once". */
export function duration(min: string, max: string): Kind<number> {
  return quantity(min, max, parseDurationMs, (value) => `ms, s, m, h or d${withUnit(value, 's')}`)
}

/** In bytes. */
export function size(min: string, max: string): Kind<number> {
  return quantity(min, max, parseSize, (value) => `B, KiB, MiB or GiB${withUnit(value, 'B')}`)
}

function quantity(
  min: string,
  max: string,
  parse: (text: string) => number | null,
  units: (value: unknown) => string,
): Kind<number> {
  const takes = `${min} to ${max}`
  const [least, most] = [parse(min)!, parse(max)!]
  return {
    takes,
    read(place) {
      const { value } = place
      const amount = typeof value === 'string' ? parse(value) : value === 0 ? parse('0') : null
      if (amount === null) return place.expected(`a number with its unit: ${units(value)}`)
      return amount >= least && amount <= most ? amount : place.expected(takes)
    },
    fromText: same,
  }
}

export function choice<Choice extends string>(...choices: readonly Choice[]): Kind<Choice> {
  return {
    takes: choices.join(', '),
    read(place) {
      const { value } = place
      // YAML 1.2 parses `off` as text, and a version such as 1.2 as a number.
      const number = typeof value === 'number' ? String(value) : null
      return choices.find((each) => each === number) ?? place.choice(choices)
    },
    fromText: same,
  }
}

/** A name for metrics and rules. */
export const name: Kind<string> = written({
  takes: 'letters, digits and . _ -',
  expected: 'up to 64 letters and digits, with . _ - between them',
  parse: matching(/^\w(?:[\w.-]{0,62}\w)?$/),
})

/** The same kind, or `null`. */
export function optional<Value>(kind: Kind<Value>): Kind<Value | null> {
  return { ...kind, read: (place) => (place.value === null ? null : kind.read(place)) }
}

/** Warns about values above `limit`. */
export function above(limit: number, what: string): (value: number) => string | null {
  return (value) => (value > limit ? what : null)
}

export function slow(what: string, limitMs = 60_000): (valueMs: number) => string | null {
  return (valueMs) => (valueMs > limitMs ? `${what} are kept open for that long` : null)
}

export function matching(pattern: RegExp): (text: string) => string | null {
  return (given) => (pattern.test(given) ? given : null)
}

function same(given: string): string {
  return given
}

function none(): string {
  return ''
}

function noProblem(): null {
  return null
}

/** Suggests a unit for a bare number: `(did you mean 10s?)`. */
function withUnit(raw: unknown, unit: string): string {
  const isBare =
    typeof raw === 'number' ? Number.isSafeInteger(raw) : typeof raw === 'string' && /^\d+$/.test(raw)
  return isBare ? ` (did you mean ${raw}${unit}?)` : ''
}

function parseSize(given: string): number | null {
  const [, number, unit] = SIZE.exec(given) ?? []
  return unit === undefined ? null : Number(number) * BYTES.get(unit)!
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what it is for
const CONTROL = /[\x00-\x1f\x7f]/
const SIZE = /^(\d{1,9})(B|KiB|MiB|GiB)$/
const BYTES: ReadonlyMap<string, number> = new Map([
  ['B', 1],
  ['KiB', 1024],
  ['MiB', 1024 ** 2],
  ['GiB', 1024 ** 3],
])
