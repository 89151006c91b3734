import type { Page, PageOf } from '../../store/engine/page.ts'
import type { Store } from '../../store/store.ts'
import type { Arguments, ExitCode } from '../../terminal/command.ts'
import type { Io } from '../../terminal/io.ts'
import { withStore } from '../../runtime/store-given.ts'
import { type Column, renderTable } from '../../terminal/table.ts'

/** A list in the store and how its command prints it. */
interface RecordList<Kept, Shown> {
  readonly columns: readonly Column[]
  page(store: Store, page: Page): Promise<PageOf<Kept>>
  /** The JSON form. */
  shown(record: Kept): Shown
  row(shown: Shown): readonly string[]
}

/** Prints the whole list, as a table or as JSON. */
export async function printRecords<Kept, Shown>(
  given: Arguments,
  io: Io,
  list: RecordList<Kept, Shown>,
): Promise<ExitCode> {
  const records = await withStore(given, io, false, (store) => wholeList((page) => list.page(store, page)))
  const all = records.map((record) => list.shown(record))
  const lines = given.flag('json')
    ? [JSON.stringify(all)]
    : renderTable(
        list.columns,
        all.map((each) => list.row(each)),
        io.columns,
      )
  io.stdout.write(`${lines.join('\n')}\n`)
  return 0
}

async function wholeList<Kept>(list: (page: Page) => Promise<PageOf<Kept>>): Promise<readonly Kept[]> {
  const all: Kept[] = []
  for (let page = 1; ; page++) {
    const { items } = await list({ page, limit: LIMIT })
    all.push(...items)
    if (items.length < LIMIT) return all
  }
}

const LIMIT = 200
