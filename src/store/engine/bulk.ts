/**
 * Many rows in parts that one statement each can take. The sizes are powers of two: as each size is a text of its own,
 * there are few texts, and all of them stay prepared.
 */
export function* parts<Row>(rows: readonly Row[], rowsMax = ROWS_MAX): Iterable<readonly Row[]> {
  let size = rowsMax
  for (let at = 0; at < rows.length; at += size) {
    while (size > rows.length - at) size /= 2
    yield rows.slice(at, at + size)
  }
}

/** A power of two. With more, statements get no faster. */
const ROWS_MAX = 128
