export interface Column {
  readonly title: string
  readonly align?: 'right'
  /** The column shrinks, with an ellipsis, if the table is too wide. Other columns are never truncated. */
  readonly flexible?: true
}

/**
 * The lines of a table, titles first, at most `width` wide if the flexible columns allow it; the widest one
 * shrinks first. Cells may contain client data, so control characters are escaped.
 */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number,
): string[] {
  const table = [columns.map((column) => column.title), ...rows.map((row) => row.map(visible))]
  const widths = fitted(columns, table, width)
  return table.map((row) => {
    const cells = row.map((cell, index) =>
      aligned(columns[index]!, cut(cell, widths[index]!), widths[index]!),
    )
    return cells.join(GAP).trimEnd()
  })
}

/**
 * Escapes characters that a terminal obeys: in a server name they could move the cursor, change the window
 * title or the text direction.
 */
export function visible(cell: string): string {
  return cell.replace(OBEYED, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`)
}

function fitted(columns: readonly Column[], table: readonly (readonly string[])[], width: number): number[] {
  const widths = columns.map((_, index) =>
    table.reduce((most, row) => Math.max(most, columnsOf(row[index]!)), 0),
  )
  const flexible = [...columns.keys()].filter((index) => columns[index]!.flexible)
  let excess = widths.reduce((sum, each) => sum + each, GAP.length * (columns.length - 1)) - width
  for (; excess > 0; excess--) {
    const widest = flexible.reduce((best, index) => (widths[index]! > (widths[best] ?? 0) ? index : best), -1)
    if (widest === -1 || widths[widest]! <= FLEXIBLE_COLUMNS_MIN) break
    widths[widest]!--
  }
  return widths
}

function aligned({ align }: Column, cell: string, width: number): string {
  const padding = ' '.repeat(width - columnsOf(cell))
  return align === 'right' ? padding + cell : cell + padding
}

function cut(cell: string, width: number): string {
  if (columnsOf(cell) <= width) return cell
  let shortened = ''
  let left = width - ELLIPSIS.length
  for (const { segment } of GRAPHEMES.segment(cell)) {
    left -= columnsOf(segment)
    if (left < 0) break
    shortened += segment
  }
  return shortened + ELLIPSIS
}

/** Number of terminal columns of a text: two for each East Asian wide character or emoji. */
export function columnsOf(text: string): number {
  if (PLAIN.test(text)) return text.length
  let columns = 0
  for (const { segment } of GRAPHEMES.segment(text)) columns += WIDE.test(segment) ? 2 : 1
  return columns
}

const GAP = '  '
const ELLIPSIS = '…'
const FLEXIBLE_COLUMNS_MIN = 8
const GRAPHEMES = new Intl.Segmenter()
const PLAIN = /^[\x20-\x7e]*$/
const WIDE =
  /^[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60]/u
const OBEYED = /[\p{Cc}\p{Bidi_Control}]/gu
