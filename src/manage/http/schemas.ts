import * as z from 'zod'
import { didYouMean } from '../../shared/did-you-mean.ts'
import type { Page } from '../../store/engine/page.ts'

// Schemas that several resources share. They are strict: an unknown member is refused, with the nearest known
// name as a suggestion.

/** RFC 3339, UTC, with milliseconds. */
export const time = z.iso
  .datetime({ precision: 3 })
  .meta({ id: 'Time', description: 'RFC 3339, UTC, with milliseconds.', example: '2026-11-21T09:30:00.000Z' })

export function timeOf(ms: number): string
export function timeOf(ms: number | null): string | null
export function timeOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

/** An integer in a query. */
export function integerInQuery(min: number, max: number, fallback: number, description: string) {
  return wholeNumber(min, max)
    .default(fallback)
    .meta(integerMeta(description, { minimum: min, maximum: max, default: fallback }))
}

/** The same without a default. */
export function optionalIntegerInQuery(min: number, max: number, description: string) {
  return wholeNumber(min, max)
    .optional()
    .meta(integerMeta(description, { minimum: min, maximum: max }))
}

function wholeNumber(min: number, max: number) {
  const detail = `must be a whole number from ${min} to ${max}`
  return z
    .string()
    .regex(/^\d{1,15}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.int().min(min, detail).max(max, detail))
}

function integerMeta(description: string, schema: Readonly<Record<string, number>>) {
  return {
    description,
    override: ({ jsonSchema }: { jsonSchema: Record<string, unknown> }) => {
      delete jsonSchema['pattern']
      Object.assign(jsonSchema, { type: 'integer', ...schema })
    },
  }
}

/** A search text in a query. PostgreSQL text cannot contain NUL, so NUL is refused. */
export function textInQuery(description: string, lengthMax = 200) {
  return z
    .string()
    .min(1, 'is empty')
    .max(lengthMax, `is longer than ${lengthMax} characters`)
    .refine((text) => !text.includes('\0'), 'contains the character U+0000')
    .meta({ description })
}

export function timeInQuery(description: string) {
  return z.iso.datetime({ offset: true, error: 'must be a time (RFC 3339)' }).optional().meta({ description })
}

/** Some of these values, separated by commas. */
export function severalInQuery<Value extends string>(values: readonly Value[], description: string) {
  return z
    .string()
    .transform((text, context) => {
      const given = severalIn(text)
      const wrong = given.find((each) => !values.includes(each as Value))
      if (wrong === undefined) return given as readonly Value[]
      const near = didYouMean(wrong, values)
      context.addIssue({ code: 'custom', message: `must be one of ${values.join(', ')}${near}` })
      return z.NEVER
    })
    .optional()
    .meta({ description })
}

export function severalIn(text: string): readonly string[] {
  return [...new Set(text.split(',').map((each) => each.trim()))]
}

export function booleanInQuery(fallback: boolean, description: string) {
  return z
    .string()
    .regex(/^(?:true|false)$/, 'must be true or false')
    .transform((text) => text === 'true')
    .default(fallback)
    .meta({
      description,
      override: ({ jsonSchema }) => {
        delete jsonSchema.enum
        Object.assign(jsonSchema, { type: 'boolean', default: fallback })
      },
    })
}

/** A list of reasons for a result. `description` explains the weight, `kind` is an example of a kind. */
export function reasons(id: string, kind: string, description: string) {
  const reason = z
    .strictObject({
      kind: z.string().meta({ example: kind }),
      detail: z.string().meta({ description: 'The reason as text.' }),
      weight: z.number(),
    })
    .meta({ id, description })
  return z.array(reason).meta({ description: 'Strongest first.' })
}

/** `page` and `limit`: the query parameters of every list with pages. */
export const PAGE_FIELDS = {
  page: integerInQuery(1, 1_000_000, 1, 'The page number, starting at 1.'),
  limit: integerInQuery(1, 200, 50, 'Items per page.'),
}

/** `total`, `page` and `limit`: members of every list answer with pages. */
export const PAGE_ANSWER = {
  total: z.int().min(0).meta({ description: 'The number of items on all pages.' }),
  page: z.int().min(1),
  limit: z.int().min(1).max(200),
}

/**
 * The `Link` header of a page (RFC 8288): first, prev, next, last. `target`: path and query of the request.
 */
export function links(
  publicUrl: string,
  target: string,
  { page, limit }: Page,
  total: number,
): Record<string, string> {
  const last = Math.max(1, Math.ceil(total / limit))
  const pages: readonly (readonly [string, number])[] = [
    ['first', 1],
    ...(page > 1 ? [['prev', Math.min(page - 1, last)] as const] : []),
    ...(page < last ? [['next', page + 1] as const] : []),
    ['last', last],
  ]
  const url = new URL(target, publicUrl)
  const text = pages.map(([rel, number]) => {
    url.searchParams.set('page', String(number))
    return `<${publicUrl}${url.pathname}${url.search}>; rel="${rel}"`
  })
  return { Link: text.join(', ') }
}
