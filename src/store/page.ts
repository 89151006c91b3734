import type { SelectQueryBuilder } from 'kysely'
import type { Tables } from './tables.ts'

/** Which part of a list: pages count from 1. */
export interface Page {
  readonly page: number
  readonly limit: number
}

export interface PageOf<Item> {
  readonly items: readonly Item[]
  /** Of the whole list. */
  readonly total: number
}

/** One page of `rows`, in their order, and how many are `found` on all of them. */
export async function pageOf<Row, Item>(
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
