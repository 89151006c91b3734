import * as z from 'zod'
import { didYouMean } from '../../shared/did-you-mean.ts'
import { type FieldError, Refusal } from './refusal.ts'

/** What the schema makes of a value from outside. Throws a Refusal with everything that is wrong with it. */
export function validated<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  what: 'body' | 'query',
): z.output<Schema> {
  if (USUAL.get(schema)?.(value) === true && !hasZero(value)) return value as z.output<Schema>
  const result = schema.safeParse(value)
  const zero = pointerToZero(value)
  if (result.success && zero === null) return result.data
  const errors = result.success
    ? [{ pointer: zero!, detail: 'has the character U+0000 in it' }]
    : result.error.issues.flatMap((issue) => fieldErrors(schema, issue, value)).slice(0, ERRORS_MAX)
  const first = errors[0]!
  const place = first.pointer === '' ? `the ${what}` : first.pointer.slice(1)
  throw new Refusal('invalid_request', `${place} ${first.detail}`, { errors })
}

/**
 * What is asked most often is not read by its schema if it is usual: `isUsual` takes only what the schema takes, and would
 * not change, and leaves to it all else, and to say what is wrong.
 */
export function withUsual<Schema extends z.ZodType>(
  schema: Schema,
  isUsual: (value: unknown) => boolean,
): Schema {
  USUAL.set(schema, isUsual)
  return schema
}

/** Where in it is the one character that no text in a database may have; `null`: nowhere. */
export function pointerToZero(value: unknown): string | null {
  return hasZero(value) ? placeOfZero(value, '') : null
}

/** Nearly nothing has one, and where is asked only of what has. */
function hasZero(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\0')
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(hasZero)
  for (const key in value)
    if (key.includes('\0') || hasZero((value as Record<string, unknown>)[key])) return true
  return false
}

function placeOfZero(value: unknown, at: string): string | null {
  if (typeof value === 'string') return value.includes('\0') ? at : null
  if (typeof value !== 'object' || value === null) return null
  for (const [key, member] of Object.entries(value)) {
    const found = key.includes('\0') ? at : placeOfZero(member, `${at}${pointerTo([key])}`)
    if (found !== null) return found
  }
  return null
}

function fieldErrors(schema: z.ZodType, issue: z.core.$ZodIssue, value: unknown): FieldError[] {
  const at = pointerTo(issue.path)
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.slice(0, ERRORS_MAX).map((key) => ({
        pointer: `${at}${pointerTo([key])}`,
        detail: `is not known${didYouMean(key, keysAt(schema, issue.path))}`,
      }))
    case 'invalid_type':
      return [
        {
          pointer: at,
          detail:
            valueAt(value, issue.path) === undefined ? 'is missing' : `takes ${articled(issue.expected)}`,
        },
      ]
    case 'invalid_value':
      return [{ pointer: at, detail: takesOneOf(issue.values, valueAt(value, issue.path)) }]
    case 'invalid_union': {
      // The member that came furthest says most; of those who came as far, one of its type, then the one that knows
      // more of the names.
      const knowing = issue.errors.toSorted(
        (one, other) => otherTypeIn(one) - otherTypeIn(other) || unknownIn(one) - unknownIn(other),
      )
      const members = knowing.map((errors) =>
        errors.flatMap((each) =>
          fieldErrors(schema, { ...each, path: [...issue.path, ...each.path] }, value),
        ),
      )
      const deepest = members.toSorted((one, other) => depth(other) - depth(one))[0]
      return deepest === undefined || deepest.length === 0
        ? [{ pointer: at, detail: issue.message }]
        : deepest
    }
    default:
      return [{ pointer: at, detail: issue.message }]
  }
}

function unknownIn(issues: readonly z.core.$ZodIssue[]): number {
  return issues.filter(({ code }) => code === 'unrecognized_keys').length
}

/** 1: it is none at all of what this takes. */
function otherTypeIn(issues: readonly z.core.$ZodIssue[]): number {
  return Number(issues.some(({ code, path }) => code === 'invalid_type' && path.length === 0))
}

function depth(errors: readonly FieldError[]): number {
  return Math.max(0, ...errors.map(({ pointer }) => pointer.split('/').length))
}

function takesOneOf(values: readonly unknown[], given: unknown): string {
  const near = typeof given === 'string' ? didYouMean(given, values.map(String)) : ''
  return given === undefined ? 'is missing' : `takes ${values.map(String).join(', ')}${near}`
}

function articled(type: string): string {
  return type === 'array' ? 'a list' : /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`
}

/** RFC 6901. */
function pointerTo(path: readonly PropertyKey[]): string {
  return path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (at, part) =>
      typeof at === 'object' && at !== null ? (at as Record<PropertyKey, unknown>)[part] : undefined,
    value,
  )
}

/** The names that an object there may have. */
function keysAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): readonly string[] {
  const inner = unwrapped(schema)
  if (inner instanceof z.ZodUnion) return inner.options.flatMap((option) => keysAt(option, path))
  const [part, ...rest] = path
  if (inner instanceof z.ZodObject) {
    if (part === undefined) return Object.keys(inner.shape)
    const member: z.core.$ZodType | undefined = inner.shape[String(part)]
    return member === undefined ? [] : keysAt(member, rest)
  }
  return inner instanceof z.ZodArray && part !== undefined ? keysAt(inner.element, rest) : []
}

function unwrapped(schema: z.core.$ZodType): z.core.$ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault)
    return unwrapped(schema.unwrap())
  return schema instanceof z.ZodPipe ? unwrapped(schema.in) : schema
}

const USUAL = new WeakMap<z.ZodType, (value: unknown) => boolean>()
/** More are no help to anybody. */
const ERRORS_MAX = 100
