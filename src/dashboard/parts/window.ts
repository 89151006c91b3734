/** The visible rows of a long list and their position. */
export interface RowWindow {
  /** Height of the whole list in pixels, limited because browsers draw only some million pixels. */
  readonly height: number
  readonly first: number
  /** One past the last row. */
  readonly end: number
  /** Offset of the first row from the top. */
  readonly top: number
}

export interface Scrolled {
  readonly total: number
  readonly rowHeight: number
  readonly viewHeight: number
  readonly scrollTop: number
}

/**
 * If there are more rows than a browser has pixels for, each scrolled pixel stands for several pixels: the
 * first row is at the top, the last at the end. Keys that scroll by a line or page would then skip rows: see
 * `scrollTopBy`.
 */
export function rowWindow({ total, rowHeight, viewHeight, scrollTop }: Scrolled): RowWindow {
  const wanted = total * rowHeight
  const height = Math.min(wanted, HEIGHT_MAX)
  const farthest = Math.max(0, height - viewHeight)
  const place = Math.min(Math.max(scrollTop, 0), farthest)
  const offset = farthest === 0 ? 0 : (place / farthest) * Math.max(0, wanted - viewHeight)
  const first = Math.max(0, Math.floor(offset / rowHeight) - SPARE)
  const end = Math.min(total, Math.ceil((offset + viewHeight) / rowHeight) + SPARE)
  return { height, first, end, top: place - (offset - first * rowHeight) }
}

/** Whether a scrolled pixel stands for several. */
export function isScaled({ total, rowHeight }: Pick<Scrolled, 'total' | 'rowHeight'>): boolean {
  return total * rowHeight > HEIGHT_MAX
}

/** The scroll position after moving by this many rows. */
export function scrollTopBy(rows: number, { total, rowHeight, viewHeight, scrollTop }: Scrolled): number {
  const [scrollable, farthest] = [total * rowHeight - viewHeight, HEIGHT_MAX - viewHeight]
  const offset = (scrollTop / farthest) * scrollable + rows * rowHeight
  return (Math.min(Math.max(offset, 0), scrollable) / scrollable) * farthest
}

/** The scroll position at which this row is the first visible one. */
export function scrollTopFor(
  row: number,
  { total, rowHeight, viewHeight }: Omit<Scrolled, 'scrollTop'>,
): number {
  const wanted = total * rowHeight
  const height = Math.min(wanted, HEIGHT_MAX)
  const scrollable = Math.max(1, wanted - viewHeight)
  return Math.min(1, (row * rowHeight) / scrollable) * Math.max(0, height - viewHeight)
}

/** Chromium and Safari draw up to 33 million pixels, Firefox up to 17 million. */
const HEIGHT_MAX = 8_000_000
/** Rows drawn above and below the visible ones. */
const SPARE = 6
