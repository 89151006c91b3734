import * as z from 'zod'
import type { Part, PartOf } from '../../store/engine/page.ts'
import type { Principal } from './access/principal.ts'
import type { Management } from '../management.ts'
import {
  CURSOR_ANSWER,
  CURSOR_FIELDS,
  cursorFor,
  cursorLinks,
  fromPosition,
  markOf,
  positionIn,
} from './cursor.ts'
import { type AnyOperation, operation } from './operation.ts'
import { links, PAGE_ANSWER, PAGE_FIELDS } from './schemas.ts'
import type { Versioned } from './version.ts'

/** Describes a list. `listing` makes the operation of each API version from it. */
export interface Listing<Filters extends z.ZodRawShape, Kept, Shown, BetaShown, Owner = true>
  extends Pick<AnyOperation, 'id' | 'path' | 'tag' | 'summary' | 'description' | 'scopes'>,
    Partial<Pick<AnyOperation, 'stream'>> {
  /** The name of the array of items in the answer. */
  readonly name: string
  readonly filters: Filters
  /** Whether the document lists `page` and `limit` before the filters. */
  readonly isPartFirst?: boolean
  /** The parent resource in the path, if the list belongs to one. */
  readonly of?: Pick<AnyOperation, 'params' | 'find'>
  part<Asked extends Part>(
    filters: z.output<z.ZodObject<Filters>>,
    part: Asked,
    management: Management,
    owner: Owner,
  ): Promise<PartOf<Kept, Asked>>
  readonly items: Items<Kept, Shown>
  /** The items in /v2, if they differ from those in /v1. */
  readonly betaItems?: Items<Kept, BetaShown>
}

/** The schema of an item, and how items are rendered. */
export interface Items<Kept, Shown> {
  readonly schema: z.ZodType<Shown>
  show(items: readonly Kept[], management: Management, principal: Principal): Promise<Shown[]> | Shown[]
}

export function listing<Filters extends z.ZodRawShape, Kept, Shown, BetaShown = Shown, Owner = true>(
  given: Listing<Filters, Kept, Shown, BetaShown, Owner>,
): Versioned {
  const betaItems: Items<Kept, Shown | BetaShown> = given.betaItems ?? given.items
  return { v1: byPage(given, given.items), v2: byCursor(given, betaItems) }
}

function byPage<Filters extends z.ZodRawShape, Kept, Shown, Owner>(
  given: Listing<Filters, Kept, unknown, unknown, Owner>,
  items: Items<Kept, Shown>,
): AnyOperation {
  const { name } = given
  return operation({
    ...describedIn(given),
    query: z.strictObject(fieldsOf(given, PAGE_FIELDS)),
    answer: z.strictObject({ [name]: z.array(items.schema), ...PAGE_ANSWER }) as z.ZodType,
    run: async ({ query, target, subject, principal }, management) => {
      const { page, limit, ...filters } = query as PageQuery & z.output<z.ZodObject<Filters>>
      const found = await given.part(filters as never, { page, limit }, management, subject as Owner)
      const { total } = found
      return {
        body: { [name]: await items.show(found.items, management, principal), total, page, limit },
        headers: links(management.publicUrl, target, { page, limit }, total),
      }
    },
  })
}

function byCursor<Filters extends z.ZodRawShape, Kept, Shown, Owner>(
  given: Listing<Filters, Kept, unknown, unknown, Owner>,
  items: Items<Kept, Shown>,
): AnyOperation {
  const { id, name } = given
  return operation({
    ...describedIn(given),
    query: z.strictObject(fieldsOf(given, CURSOR_FIELDS)),
    answer: z.strictObject({ [name]: z.array(items.schema), ...CURSOR_ANSWER }) as z.ZodType,
    run: async ({ query, target, params, subject, principal }, management) => {
      const { cursor, limit, ...filters } = query as CursorQuery & z.output<z.ZodObject<Filters>>
      const mark = given.of === undefined ? markOf(id, filters) : markOf(id, params, filters)
      const after = positionIn(cursor, mark)
      const found = await fromPosition(() =>
        given.part(filters as never, { after, limit }, management, subject as Owner),
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

function describedIn({ id, path, tag, summary, description, scopes, stream = null, of = {} }: Described) {
  return { id, method: 'GET' as const, path, tag, summary, description, scopes, stream, ...of }
}

type Described = Pick<AnyOperation, 'id' | 'path' | 'tag' | 'summary' | 'description' | 'scopes'> &
  Partial<Pick<AnyOperation, 'stream'>> & {
    readonly of?: Partial<Pick<AnyOperation, 'params' | 'find'>>
  }

function fieldsOf(
  { filters, isPartFirst = false }: { readonly filters: z.ZodRawShape; readonly isPartFirst?: boolean },
  part: z.ZodRawShape,
): z.ZodRawShape {
  return isPartFirst ? { ...part, ...filters } : { ...filters, ...part }
}
