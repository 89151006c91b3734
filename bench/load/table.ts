export type Column<Row> = readonly [heading: string, cell: (row: Row) => string]

/** In Markdown, aligned so that it can be read as it is. */
export function table<Row>(
  title: string,
  columns: readonly Column<Row>[],
  rows: ReadonlyMap<string, Row>,
): string {
  const lines = [
    [title, ...columns.map(([heading]) => heading)],
    ...[...rows].map(([name, row]) => [name, ...columns.map(([, cell]) => cell(row).replace('NaN', '–'))]),
  ]
  const widths = lines[0]!.map((_, at) => Math.max(...lines.map((line) => line[at]!.length)))
  const [head, ...rest] = lines.map((line) => {
    const cells = line.map((text, at) => (at === 0 ? text.padEnd(widths[at]!) : text.padStart(widths[at]!)))
    return `| ${cells.join(' | ')} |\n`
  })
  const rule = widths.map((width, at) => (at === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  return `\n${head}| ${rule.join(' | ')} |\n${rest.join('')}`
}
