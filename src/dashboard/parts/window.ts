/** Which rows of a long list are to be seen, and where they are drawn. */
export interface RowWindow {
  /** Of the whole list, in pixels: browsers draw nothing beyond some millions. */
  readonly height: number
  readonly first: number
  /** One behind the last. */
  readonly end: number
  /** Of the first one, from the top. */
  readonly top: number
}

export interface Scrolled {
  readonly total: number
  readonly rowHeight: number
  readonly viewHeight: number
  readonly scrollTop: number
}

/**
 * Where there are more rows than a browser has pixels for, each pixel that is scrolled stands for several: the first row
 * is at the top, the last one at the end. The keys that go on by a line or a page would pass rows over: see `scrollTopBy`.
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

/** Whether a pixel stands for more than one. */
export function isScaled({ total, rowHeight }: Pick<Scrolled, 'total' | 'rowHeight'>): boolean {
  return total * rowHeight > HEIGHT_MAX
}

/** Where to scroll to, to go on by so many rows, or back. */
export function scrollTopBy(rows: number, { total, rowHeight, viewHeight, scrollTop }: Scrolled): number {
  const [scrollable, farthest] = [total * rowHeight - viewHeight, HEIGHT_MAX - viewHeight]
  const offset = (scrollTop / farthest) * scrollable + rows * rowHeight
  return (Math.min(Math.max(offset, 0), scrollable) / scrollable) * farthest
}

/** Where to scroll to, so that this row is the first one to be seen. */
export function scrollTopFor(
  row: number,
  { total, rowHeight, viewHeight }: Omit<Scrolled, 'scrollTop'>,
): number {
  const wanted = total * rowHeight
  const height = Math.min(wanted, HEIGHT_MAX)
  const scrollable = Math.max(1, wanted - viewHeight)
  return Math.min(1, (row * rowHeight) / scrollable) * Math.max(0, height - viewHeight)
}

/** Chromium and Safari draw up to 33 million, Firefox up to 17. */
const HEIGHT_MAX = 8_000_000
/** Drawn above and below of what is seen. */
const SPARE = 6
