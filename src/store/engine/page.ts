import { type RawBuilder, type SelectQueryBuilder, sql } from 'kysely'
import { Fault } from '../../shared/fault.ts'
import type { Tables } from './tables.ts'

/** A part of a list: a numbered page, or a stretch after a position. */
export type Part = Page | Stretch

/** Page numbers start at 1. */
export interface Page {
  readonly page: number
  readonly limit: number
}

export interface Stretch {
  /** `null`: from the start of the list. */
  readonly after: Position | null
  readonly limit: number
}

/** The position of an item: its values of the columns that the list is sorted by. */
export type Position = readonly (string | number)[]

export type PartOf<Item, Asked extends Part> = Asked extends Page ? PageOf<Item> : StretchOf<Item>

export interface PageOf<Item> {
  readonly items: readonly Item[]
  /** The length of the whole list. */
  readonly total: number
}

export interface StretchOf<Item> {
  readonly items: readonly Item[]
  /** The position to continue after; `null`: the list ends here. */
  readonly next: Position | null
}

/** A sort order. Its columns together are unique, and may have an index. */
export interface Order {
  readonly columns: readonly OrderColumn[]
  readonly isDescending: boolean
}

export interface OrderColumn {
  readonly name: `${keyof Tables}.${string}`
  /** `whole`: an integer from 0. */
  readonly kind: 'text' | 'whole' | 'number'
}

/** One part of `rows` in this order. A page also has the number of all rows in `found`. */
export async function partOf<Row extends object, Item, Asked extends Part>(
  found: SelectQueryBuilder<Tables, keyof Tables, object>,
  rows: SelectQueryBuilder<Tables, keyof Tables, Row>,
  order: Order,
  part: Asked,
  item: (row: Row) => Item,
): Promise<PartOf<Item, Asked>> {
  const inOrder = rows.orderBy(inOrderOf(order))
  const answer =
    'page' in part ? await pageOf(found, inOrder, part, item) : await stretchOf(inOrder, order, part, item)
  return answer as PartOf<Item, Asked>
}

async function pageOf<Row, Item>(
  found: SelectQueryBuilder<Tables, keyof Tables, object>,
  rows: SelectQueryBuilder<Tables, keyof Tables, Row>,
  { page, limit }: Page,
  item: (row: Row) => Item,
): Promise<PageOf<Item>> {
  const counted = await found.select(({ fn }) => fn.countAll<number>().as('total')).executeTakeFirstOrThrow()
  const total = Number((counted as { total: number }).total)
  if ((page - 1) * limit >= total) return { items: [], total }
  const some = await rows
    .limit(limit)
    .offset((page - 1) * limit)
    .execute()
  return { items: some.map(item), total }
}

/**
 * Rows that are added or deleted meanwhile do not shift the rest, because each stretch
 * starts where the last one ended.
 */
async function stretchOf<Row extends object, Item>(
  rows: SelectQueryBuilder<Tables, keyof Tables, Row>,
  order: Order,
  { after, limit }: Stretch,
  item: (row: Row) => Item,
): Promise<StretchOf<Item>> {
  const behind = after === null ? rows : rows.where(isBehind(order, after))
  const { items, next } = cutOff(await behind.limit(limit + 1).execute(), order, limit)
  return { items: items.map(item), next }
}

/** One part of a list in memory, sorted by a unique text. */
export function partIn<Item, Asked extends Part>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  part: Asked,
): PartOf<Item, Asked> {
  const { limit } = part
  if ('page' in part) {
    const from = (part.page - 1) * limit
    return { items: items.slice(from, from + limit), total: items.length } as unknown as PartOf<Item, Asked>
  }
  const { after } = part
  if (after !== null) checkPosition({ columns: [{ name: 'apps.id', kind: 'text' }] }, after)
  const behind = after === null ? items : items.filter((item) => keyOf(item) > (after[0] as string))
  const some = behind.slice(0, limit)
  const next = behind.length > limit ? [keyOf(some.at(-1)!)] : null
  return { items: some, next } as unknown as PartOf<Item, Asked>
}

/** The part of an empty list. */
export function noPart<Item, Asked extends Part>(part: Asked): PartOf<Item, Asked> {
  const answer = 'page' in part ? { items: [], total: 0 } : { items: [], next: null }
  return answer as unknown as PartOf<Item, Asked>
}

/**
 * Takes one row more than the limit. Returns the rows within the limit, and the position
 * of the last if there are more.
 */
export function cutOff<Row extends object>(
  rows: readonly Row[],
  { columns }: Order,
  limit: number,
): StretchOf<Row> {
  if (rows.length <= limit) return { items: rows, next: null }
  const items = rows.slice(0, limit)
  const last = items.at(-1) as Readonly<Record<string, string | number>>
  return { items, next: columns.map(({ name }) => last[columnOf(name)]!) }
}

/** The list for `order by`. */
export function inOrderOf({ columns, isDescending }: Order): RawBuilder<unknown> {
  const direction = sql.raw(isDescending ? 'desc' : 'asc')
  return sql`${sql.join(columns.map(({ name }) => sql`${sql.ref(name)} ${direction}`))}`
}

/**
 * One comparison of row values, which an index on these columns can answer. Throws a
 * Fault if the position is invalid.
 */
export function isBehind(order: Order, position: Position): RawBuilder<boolean> {
  checkPosition(order, position)
  const { columns, isDescending } = order
  const refs = columns.map(({ name }) => sql.ref(name))
  const sign = sql.raw(isDescending ? '<' : '>')
  return sql<boolean>`(${sql.join(refs)}) ${sign} (${sql.join(position)})`
}

/** Throws a Fault if the position is invalid. It may come from a client. */
export function checkPosition({ columns }: Pick<Order, 'columns'>, position: Position): void {
  const fits = columns.every(({ kind }, index) => isOfKind(kind, position[index]))
  if (fits && position.length === columns.length) return
  throw new Fault(NO_POSITION, 'this is not a position in the list')
}

function isOfKind(kind: OrderColumn['kind'], value: unknown): boolean {
  switch (kind) {
    case 'text':
      // PostgreSQL cannot store other text.
      return typeof value === 'string' && value.isWellFormed() && !value.includes('\0')
    case 'whole':
      return Number.isSafeInteger(value) && (value as number) >= 0
    case 'number':
      return Number.isFinite(value)
  }
}

function columnOf(name: OrderColumn['name']): string {
  return name.slice(name.indexOf('.') + 1)
}

export const NO_POSITION = 'POSITION_INVALID'
