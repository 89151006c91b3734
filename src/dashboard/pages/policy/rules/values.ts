import type { FieldKind, RuleField } from './fields.ts'
import { isObject, type WrittenRule } from './policy-rules.ts'

/** The kind for this value: any value that does not fit is edited as JSON. */
export function kindFor({ kind, choices = [] }: RuleField, value: unknown): FieldKind {
  if (value === undefined) return kind
  const fits = {
    text: () => isPlain(value),
    number: () => isPlain(value),
    choice: () => isPlain(value) && choices.includes(String(value)),
    choices: () => listOf(value).every((each) => choices.includes(String(each))),
    lines: () => listOf(value).every((each) => typeof each === 'string' && !each.includes('\n')),
    words: () => listOf(value).every((each) => typeof each !== 'object' && !String(each).includes('\n')),
    'yes-no': () => typeof value === 'boolean',
    check: () => typeof value === 'boolean',
    pairs: () => isObject(value) && Object.values(value).every((each) => typeof each === 'string'),
    json: () => true,
  }[kind]
  return fits() ? kind : 'json'
}

/** A value as it stands in an input. */
export function textOf(kind: FieldKind, value: unknown): string {
  if (value === undefined) return ''
  switch (kind) {
    case 'lines':
    case 'words':
    case 'choices':
      return listOf(value).map(String).join('\n')
    case 'pairs':
      return Object.entries(value as WrittenRule)
        .map(([name, each]) => `${name}: ${String(each)}`)
        .join('\n')
    case 'json':
      return typeof value === 'string' && valueIn(kind, value) === value ? value : JSON.stringify(value)
    default:
      return String(value)
  }
}

/** The value of a text. `undefined`: the text is empty, so the member is left out. */
export function valueIn(kind: FieldKind, text: string): unknown {
  if (text.trim() === '') return undefined
  switch (kind) {
    case 'number':
      return Number.isFinite(Number(text)) ? Number(text) : text
    case 'yes-no':
    case 'check':
      return text === 'true'
    case 'lines':
    case 'choices':
      return oneOrMore(linesOf(text))
    case 'words':
      return oneOrMore(
        linesOf(text).map((each) => (each === 'true' || each === 'false' ? each === 'true' : each)),
      )
    case 'pairs':
      return Object.fromEntries(linesOf(text).map(pairOf))
    case 'json':
      return parsed(text)
    case 'text':
    case 'choice':
      return text
  }
}

/** A member of an object, or of a member: `free.requests`. */
export function memberOf(object: WrittenRule, name: string): unknown {
  return name.split('.').reduce<unknown>((at, part) => (isObject(at) ? at[part] : undefined), object)
}

/** The object with this member. `undefined`: without it, and without objects that are empty then. */
export function withMember(object: WrittenRule, name: string, value: unknown): WrittenRule {
  const [first = '', ...rest] = name.split('.')
  const inner = isObject(object[first]) ? object[first] : {}
  const next = rest.length === 0 ? value : orUndefined(withMember(inner, rest.join('.'), value))
  if (next !== undefined) return { ...object, [first]: next }
  const { [first]: _, ...others } = object
  return others
}

function orUndefined(object: WrittenRule): WrittenRule | undefined {
  return Object.keys(object).length === 0 ? undefined : object
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value]
}

function oneOrMore(list: readonly unknown[]): unknown {
  return list.length === 1 ? list[0] : list
}

function linesOf(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

function pairOf(line: string): readonly [string, string] {
  const at = line.indexOf(':')
  return at === -1 ? [line, ''] : [line.slice(0, at).trim(), line.slice(at + 1).trim()]
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function isPlain(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number'
}
