import { createHash } from 'node:crypto'
import * as z from 'zod'
import { Fault } from '../../shared/fault.ts'
import { NO_POSITION, type Position } from '../../store/engine/page.ts'
import { invalid, type Refusal } from './refusal.ts'
import { PAGE_FIELDS } from './schemas.ts'

// A cursor holds the position after which a list continues. It grants no access: a forged cursor only selects
// another part of the same list.

/** `cursor` and `limit`: the query parameters of every list in /v2. */
export const CURSOR_FIELDS = {
  cursor: z
    .string()
    .min(1, 'is empty')
    .max(2_048, 'is invalid: take it from next_cursor')
    .regex(/^[\w-]*$/, 'is invalid: take it from next_cursor')
    .optional()
    .meta({
      description:
        'The `next_cursor` of the previous page of the same list, with the same filters. Omit it for the first page.',
    }),
  limit: PAGE_FIELDS.limit,
}

/** `limit` and `next_cursor`: members of every list answer in /v2. */
export const CURSOR_ANSWER = {
  limit: z.int().min(1).max(200),
  next_cursor: z
    .string()
    .nullable()
    .meta({ description: 'The cursor of the next page. `null` on the last page.' }),
}

/** A mark that ties a cursor to one list. `of`: the operation id, the path parameters and the filters. */
export function markOf(...of: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(of)).digest('base64url').slice(0, MARK_LENGTH)
}

export function cursorFor(mark: string, position: Position): string {
  return Buffer.from(JSON.stringify([mark, ...position])).toString('base64url')
}

/** Returns `null` if no cursor was given. Throws a Refusal if `cursorFor` did not make it with this mark. */
export function positionIn(cursor: string | undefined, mark: string): Position | null {
  if (cursor === undefined) return null
  const [, ...values] = listIn(Buffer.from(cursor, 'base64url').toString())
  const position = values as Position // the list checks the values
  if (cursorFor(mark, position) !== cursor) throw refusedCursor()
  return position
}

/** Runs `work`. If the list rejects the position, throws a Refusal of the cursor. */
export async function fromPosition<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Fault && error.code === NO_POSITION) throw refusedCursor()
    throw error
  }
}

/** The `Link` header (RFC 8288): first, next. `target`: path and query of the request. */
export function cursorLinks(publicUrl: string, target: string, next: string | null): Record<string, string> {
  const url = new URL(target, publicUrl)
  const link = (rel: string) => `<${publicUrl}${url.pathname}${url.search}>; rel="${rel}"`
  url.searchParams.delete('cursor')
  const links = [link('first')]
  if (next !== null) {
    url.searchParams.set('cursor', next)
    links.push(link('next'))
  }
  return { Link: links.join(', ') }
}

function listIn(text: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}

export function refusedCursor(): Refusal {
  return invalid([
    {
      pointer: '/cursor',
      detail: 'is not a cursor of this list: take it from next_cursor, with the same filters',
    },
  ])
}

/** 96 bits, so no two lists share a mark. */
const MARK_LENGTH = 16
