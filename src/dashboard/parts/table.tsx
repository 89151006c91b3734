import type { ComponentChildren } from 'preact'

export interface TableColumn<Row> {
  readonly title: string
  readonly isNumber?: boolean
  /** Hidden on narrow screens. */
  readonly isExtra?: boolean
  cell(row: Row, at: number): ComponentChildren
}

interface Props<Row> {
  /** The subject of the table, for screen readers: "…, as a table". */
  readonly label: string
  readonly rows: readonly Row[]
  keyOf(row: Row, at: number): string
  /** The first column names the row. */
  readonly columns: readonly TableColumn<Row>[]
}

/** A table that fits on a page; for longer lists there is LongTable. */
export function Table<Row>({ label, rows, keyOf, columns }: Props<Row>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <section class="scrolled" tabIndex={0} aria-label={`${label}, as a table`}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={keyOf(row, at)}>
              {columns.map((column, place) =>
                place === 0 ? (
                  <th key={column.title} scope="row">
                    {column.cell(row, at)}
                  </th>
                ) : (
                  <td key={column.title} class={classOf(column)}>
                    {column.cell(row, at)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

function classOf({ isNumber = false, isExtra = false }: TableColumn<never>): string | undefined {
  return (
    [isNumber ? 'number' : '', isExtra ? 'extra' : ''].filter((each) => each !== '').join(' ') || undefined
  )
}
