/**
 * Splits rows into parts for one statement each. The sizes are powers of two. Each size has its own SQL text,
 * so there are few texts and all stay prepared.
 */
export function* parts<Row>(rows: readonly Row[], rowsMax = ROWS_MAX): Iterable<readonly Row[]> {
  let size = rowsMax
  for (let at = 0; at < rows.length; at += size) {
    while (size > rows.length - at) size /= 2
    yield rows.slice(at, at + size)
  }
}

/** A power of two. Larger statements are not faster. */
const ROWS_MAX = 128
