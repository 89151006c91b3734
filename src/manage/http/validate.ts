import * as z from 'zod'
import { didYouMean } from '../../shared/did-you-mean.ts'
import { type FieldError, Refusal } from './refusal.ts'

/**
 * Validates a value from outside and returns the schema's output. Throws a Refusal that lists every error.
 */
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
    ? [{ pointer: zero!, detail: 'contains the character U+0000' }]
    : result.error.issues.flatMap((issue) => fieldErrors(schema, issue, value)).slice(0, ERRORS_MAX)
  const first = errors[0]!
  const place = first.pointer === '' ? `the ${what}` : first.pointer.slice(1)
  throw new Refusal('invalid_request', `${place} ${first.detail}`, { errors })
}

/**
 * Adds a fast check to a schema that is used often. `isUsual` may accept only values that the schema accepts
 * and returns unchanged. All other values go to the schema, which also describes the errors.
 */
export function withUsual<Schema extends z.ZodType>(
  schema: Schema,
  isUsual: (value: unknown) => boolean,
): Schema {
  USUAL.set(schema, isUsual)
  return schema
}

/** A JSON Pointer to the first U+0000, which no text in the database may contain; `null`: no such character. */
export function pointerToZero(value: unknown): string | null {
  return hasZero(value) ? placeOfZero(value, '') : null
}

/** A fast check. Almost no value contains U+0000, and only for those that do is the place needed. */
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
        detail: `is unknown${didYouMean(key, keysAt(schema, issue.path))}`,
      }))
    case 'invalid_type':
      return [
        {
          pointer: at,
          detail:
            valueAt(value, issue.path) === undefined ? 'is missing' : `must be ${articled(issue.expected)}`,
        },
      ]
    case 'invalid_value':
      return [{ pointer: at, detail: oneOf(issue.values, valueAt(value, issue.path)) }]
    case 'invalid_union': {
      // Report the errors of the union member that matched deepest. Among equals, prefer one of the value's
      // type, then the one that knows more of the member names.
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

/** 1 if the value has a type that this union member does not take. */
function otherTypeIn(issues: readonly z.core.$ZodIssue[]): number {
  return Number(issues.some(({ code, path }) => code === 'invalid_type' && path.length === 0))
}

function depth(errors: readonly FieldError[]): number {
  return Math.max(0, ...errors.map(({ pointer }) => pointer.split('/').length))
}

function oneOf(values: readonly unknown[], given: unknown): string {
  const near = typeof given === 'string' ? didYouMean(given, values.map(String)) : ''
  return given === undefined ? 'is missing' : `must be one of ${values.map(String).join(', ')}${near}`
}

function articled(type: string): string {
  const name = TYPE_NAMES.get(type) ?? type
  return /^[aeiou]/.test(name) ? `an ${name}` : `a ${name}`
}

/** Where the validator's own word is not the one of JSON. */
const TYPE_NAMES: ReadonlyMap<string, string> = new Map([
  ['array', 'list'],
  ['record', 'object'],
  ['int', 'whole number'],
])

/** A JSON Pointer (RFC 6901). */
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

/** The member names that an object at this path may have. */
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
/** A longer list does not help the client. */
const ERRORS_MAX = 100
