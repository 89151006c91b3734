import * as z from 'zod'
import type { Part, PartOf } from '../../store/engine/page.ts'
import type { Principal } from './access/principal.ts'
import type { HttpContext } from './context.ts'
import {
  CURSOR_ANSWER,
  CURSOR_FIELDS,
  cursorFor,
  cursorLinks,
  fromPosition,
  markOf,
  positionIn,
} from './cursor.ts'
import { type AnyOperation, operationsOf } from './operation.ts'
import { links, PAGE_ANSWER, PAGE_FIELDS } from './schemas.ts'
import type { Versioned } from './version.ts'

/** Describes a list. `listing` makes the operation of each API version from it. */
interface Listing<Filters extends z.ZodRawShape, Kept, Shown, BetaShown, Owner, Context>
  extends Pick<AnyOperation, 'id' | 'path' | 'tag' | 'summary' | 'description' | 'scopes' | 'reach'>,
    Partial<Pick<AnyOperation<Context>, 'stream'>> {
  /** The name of the array of items in the answer. */
  readonly name: string
  readonly filters: Filters
  /** Whether the document lists `page` and `limit` before the filters. */
  readonly isPartFirst?: boolean
  /** The parent resource in the path, if the list belongs to one. */
  readonly of?: Pick<AnyOperation<Context>, 'params' | 'find'>
  readonly part: <Wanted extends Part>(
    filters: z.output<z.ZodObject<Filters>>,
    part: Wanted,
    management: Context,
    asked: AskedList<Owner>,
  ) => Promise<PartOf<Kept, Wanted>>
  readonly items: Items<Kept, Shown, Context>
  /** The items in /v2, if they differ from those in /v1. */
  readonly betaItems?: Items<Kept, BetaShown, Context>
}

/** Whose list it is, and who reads it. */
interface AskedList<Owner> {
  readonly owner: Owner
  readonly principal: Principal
}

/** The schema of an item, and how items are rendered. */
interface Items<Kept, Shown, Context> {
  readonly schema: z.ZodType<Shown>
  readonly show: (
    items: readonly Kept[],
    management: Context,
    principal: Principal,
  ) => Promise<Shown[]> | Shown[]
}

export const listingsOf =
  <Context extends Pick<HttpContext, 'publicUrl'>>() =>
  <Filters extends z.ZodRawShape, Kept, Shown, BetaShown = Shown, Owner = true>(
    given: Listing<Filters, Kept, Shown, BetaShown, Owner, Context>,
  ): Versioned<Context> => {
    const betaItems: Items<Kept, Shown | BetaShown, Context> = given.betaItems ?? given.items
    return { v1: byPage(given, given.items), v2: byCursor(given, betaItems) }
  }

function byPage<
  Filters extends z.ZodRawShape,
  Kept,
  Shown,
  Owner,
  Context extends Pick<HttpContext, 'publicUrl'>,
>(
  given: Listing<Filters, Kept, unknown, unknown, Owner, Context>,
  items: Items<Kept, Shown, Context>,
): AnyOperation<Context> {
  const { name } = given
  return operationsOf<Context>()({
    ...describedIn(given),
    query: z.strictObject(fieldsOf(given, PAGE_FIELDS)),
    answer: z.strictObject({ [name]: z.array(items.schema), ...PAGE_ANSWER }) as z.ZodType,
    run: async ({ query, target, subject, principal }, management) => {
      const { page, limit, ...filters } = query as PageQuery & z.output<z.ZodObject<Filters>>
      const found = await given.part(filters as never, { page, limit }, management, {
        owner: subject as Owner,
        principal,
      })
      const { total } = found
      return {
        body: { [name]: await items.show(found.items, management, principal), total, page, limit },
        headers: links(management.publicUrl, target, { page, limit }, total),
      }
    },
  })
}

function byCursor<
  Filters extends z.ZodRawShape,
  Kept,
  Shown,
  Owner,
  Context extends Pick<HttpContext, 'publicUrl'>,
>(
  given: Listing<Filters, Kept, unknown, unknown, Owner, Context>,
  items: Items<Kept, Shown, Context>,
): AnyOperation<Context> {
  const { id, name } = given
  return operationsOf<Context>()({
    ...describedIn(given),
    query: z.strictObject(fieldsOf(given, CURSOR_FIELDS)),
    answer: z.strictObject({ [name]: z.array(items.schema), ...CURSOR_ANSWER }) as z.ZodType,
    run: async ({ query, target, params, subject, principal }, management) => {
      const { cursor, limit, ...filters } = query as CursorQuery & z.output<z.ZodObject<Filters>>
      const mark = given.of === undefined ? markOf(id, filters) : markOf(id, params, filters)
      const after = positionIn(cursor, mark)
      const found = await fromPosition(() =>
        given.part(filters as never, { after, limit }, management, { owner: subject as Owner, principal }),
      )
      const next_cursor = found.next === null ? null : cursorFor(mark, found.next)
      return {
        body: { [name]: await items.show(found.items, management, principal), limit, next_cursor },
        headers: cursorLinks(management.publicUrl, target, next_cursor),
      }
    },
  })
}

interface PageQuery {
  readonly page: number
  readonly limit: number
}

interface CursorQuery {
  readonly cursor?: string
  readonly limit: number
}

function describedIn<Context>({
  id,
  path,
  tag,
  summary,
  description,
  scopes,
  reach,
  stream = null,
  of,
}: Pick<
  Listing<z.ZodRawShape, unknown, unknown, unknown, unknown, Context>,
  'id' | 'path' | 'tag' | 'summary' | 'description' | 'scopes' | 'reach' | 'stream' | 'of'
>) {
  return { id, method: 'GET' as const, path, tag, summary, description, scopes, reach, stream, ...of }
}

function fieldsOf(
  { filters, isPartFirst = false }: { readonly filters: z.ZodRawShape; readonly isPartFirst?: boolean },
  part: z.ZodRawShape,
): z.ZodRawShape {
  return isPartFirst ? { ...part, ...filters } : { ...filters, ...part }
}
