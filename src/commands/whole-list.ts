import type { Page, PageOf } from '../store/page.ts'

/** All there is of a list of the store. */
export async function wholeList<Item>(list: (page: Page) => Promise<PageOf<Item>>): Promise<readonly Item[]> {
  const all: Item[] = []
  for (let page = 1; ; page++) {
    const { items } = await list({ page, limit: LIMIT })
    all.push(...items)
    if (items.length < LIMIT) return all
  }
}

const LIMIT = 200
