import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiProblem } from '../api/problem.ts'
import { ProblemNote, Waiting } from './states.tsx'
import { isScaled, rowWindow, scrollTopBy } from './window.ts'

export interface LongColumn<Row> {
  readonly title: string
  /** A CSS grid size: `minmax(10rem, 2fr)`. */
  readonly width: string
  /** Hidden on narrow screens. */
  readonly isExtra?: boolean
  readonly isNumber?: boolean
  /** The list is sorted by this column, and its head turns the order round. */
  readonly sort?: { readonly direction: 'ascending' | 'descending'; turn(): void }
  cell(row: Row): ComponentChildren
}

export interface PartOfRows<Row> {
  readonly rows: readonly Row[]
  readonly total: number
}

interface Props<Row> {
  readonly label: string
  readonly columns: readonly LongColumn<Row>[]
  /** A different key means a different list. */
  readonly listKey: string
  keyOf(row: Row): string
  /** Loads a page of `PART_LENGTH` rows; pages count from 1. */
  load(page: number, signal: AbortSignal): Promise<PartOfRows<Row>>
  readonly empty: ComponentChildren
  /** The link of a row. */
  hrefOf?(row: Row): string
}

/**
 * A table of any length: only visible rows are loaded and drawn. Rows are positioned absolutely, which a
 * `<table>` does not allow, so ARIA roles mark it as a table.
 */
export function LongTable<Row>(props: Props<Row>) {
  return <Rows key={props.listKey} {...props} />
}

function Rows<Row>({ label, columns, keyOf, load, empty, hrefOf }: Props<Row>) {
  const view = useRef<HTMLDivElement>(null)
  const [scrollTop, setScrollTop] = useState(0)
  const viewHeight = useHeight(view)
  const { total, rowAt, want, problem, again } = useParts(load)
  const window = rowWindow({ total: total ?? 0, rowHeight: ROW_HEIGHT, viewHeight, scrollTop })
  useEffect(() => want(window.first, window.end), [want, window.first, window.end])
  if (total === null) return problem === null ? <Waiting /> : <ProblemNote problem={problem} again={again} />
  if (total === 0) return <>{empty}</>
  const style = { '--columns': columns.map(({ width }) => shrinkable(width)).join(' ') }
  const shown = Array.from({ length: window.end - window.first }, (_, place) => window.first + place)
  return (
    <>
      {problem !== null && <ProblemNote problem={problem} again={again} />}
      <div
        class="long-table"
        role="table"
        aria-label={label}
        aria-rowcount={total + 1}
        ref={view}
        tabIndex={0}
        style={{ height: `${window.height + HEAD_HEIGHT}px` }}
        onScroll={({ currentTarget }) => setScrollTop(currentTarget.scrollTop)}
        onKeyDown={(event) => {
          const by = ROW_KEYS[event.key]
          if (by !== undefined && hrefOf !== undefined && !isScaled({ total, rowHeight: ROW_HEIGHT })) {
            event.preventDefault()
            focusRow(event.currentTarget, by, { total, viewHeight })
            return
          }
          const rows = stepOf(event, viewHeight)
          if (rows === null || !isScaled({ total, rowHeight: ROW_HEIGHT })) return
          event.preventDefault()
          const { currentTarget } = event
          const scrolled = { total, rowHeight: ROW_HEIGHT, viewHeight, scrollTop: currentTarget.scrollTop }
          currentTarget.scrollTop = scrollTopBy(rows, scrolled)
        }}
      >
        <div class="long-head" role="rowgroup">
          <div class="long-row" role="row" aria-rowindex={1} style={style}>
            {columns.map((column) => (
              <div
                key={column.title}
                role="columnheader"
                class={classOf(column)}
                aria-sort={column.sort?.direction}
              >
                <Head column={column} />
              </div>
            ))}
          </div>
        </div>
        <div class="long-body" role="rowgroup" style={{ height: `${window.height}px` }}>
          <div role="presentation" style={{ transform: `translateY(${window.top}px)` }}>
            {shown.map((index) => {
              const row = rowAt(index)
              return (
                <div
                  key={row === null ? index : keyOf(row)}
                  class="long-row"
                  role="row"
                  aria-rowindex={index + FIRST_ROW}
                  style={style}
                >
                  {columns.map((column, place) => (
                    <div key={column.title} role="cell" class={classOf(column)}>
                      {row === null ? (
                        place === 0 && '…'
                      ) : place === 0 && hrefOf !== undefined ? (
                        <a href={hrefOf(row)}>{column.cell(row)}</a>
                      ) : (
                        column.cell(row)
                      )}
                    </div>
                  ))}
                </div>
              )
            })}
          </div>
        </div>
      </div>
    </>
  )
}

function Head<Row>({ column: { title, sort } }: { readonly column: LongColumn<Row> }) {
  if (sort === undefined) return <>{title}</>
  return (
    <button type="button" class="sort" onClick={() => sort.turn()}>
      {title} <span aria-hidden="true">{sort.direction === 'ascending' ? '▲' : '▼'}</span>
    </button>
  )
}

/** Moves the focus to the link of the next row, or of the one before. Without a focused row, to the first visible one. */
function focusRow(
  table: HTMLElement,
  by: number,
  { total, viewHeight }: { readonly total: number; readonly viewHeight: number },
): void {
  const focused = table.ownerDocument.activeElement?.closest('[aria-rowindex]')
  const index = Number(focused?.getAttribute('aria-rowindex') ?? 0) - FIRST_ROW
  const wanted = index < 0 ? Math.ceil(table.scrollTop / ROW_HEIGHT) : index + by
  const row = Math.min(Math.max(wanted, 0), total - 1)
  const top = row * ROW_HEIGHT
  table.scrollTop = Math.min(Math.max(table.scrollTop, top + ROW_HEIGHT - viewHeight), top)
  table.querySelector<HTMLElement>(`[aria-rowindex="${row + FIRST_ROW}"] a`)?.focus({ preventScroll: true })
}

/** The number of rows that a key moves; `null`: another key. */
function stepOf({ key, target, currentTarget }: KeyboardEvent, viewHeight: number): number | null {
  if (target !== currentTarget) return null
  const page = Math.max(1, Math.floor(viewHeight / ROW_HEIGHT) - 1)
  return { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, ' ': page }[key] ?? null
}

/** A fixed width gives way if the window is too narrow: otherwise the last column would be out of sight. */
function shrinkable(width: string): string {
  return /^\d+rem$/.test(width) ? `minmax(0, ${width})` : width
}

function classOf<Row>({ isExtra = false, isNumber = false }: LongColumn<Row>): string {
  return `${isExtra ? 'extra' : ''} ${isNumber ? 'number' : ''}`
}

/** The recently visible parts of the list. */
function useParts<Row>(load: Props<Row>['load']) {
  const [total, setTotal] = useState<number | null>(null)
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  const [, setTurn] = useState(0)
  const parts = useRef(new Map<number, readonly Row[]>())
  const underWay = useRef(new Map<number, AbortController>())
  const ask = useRef(load)
  ask.current = load
  const wantPart = useCallback((page: number) => {
    if (parts.current.has(page) || underWay.current.has(page)) return
    const stop = new AbortController()
    underWay.current.set(page, stop)
    ask
      .current(page, stop.signal)
      .then(({ rows, total }) => {
        parts.current.set(page, rows)
        const oldest = parts.current.size > PARTS_MAX ? parts.current.keys().next().value : undefined
        if (oldest !== undefined) parts.current.delete(oldest)
        setTotal(total)
        setProblem(null)
        setTurn((turn) => turn + 1)
      })
      .catch((error: unknown) => {
        if (!stop.signal.aborted && error instanceof ApiProblem) setProblem(error)
      })
      .finally(() => underWay.current.get(page) === stop && underWay.current.delete(page))
  }, [])
  const want = useCallback(
    (first: number, end: number) => {
      const [from, to] = [
        Math.floor(first / PART_LENGTH) + 1,
        Math.floor(Math.max(first, end - 1) / PART_LENGTH) + 1,
      ]
      // Cancel parts that were scrolled past before they arrived.
      for (const [page, stop] of underWay.current)
        if (page < from || page > to) {
          // Delete at once: the part may be wanted again before the abort is handled.
          underWay.current.delete(page)
          stop.abort()
        }
      for (let page = from; page <= to; page++) wantPart(page)
    },
    [wantPart],
  )
  useEffect(() => {
    wantPart(1)
    return () => {
      for (const stop of underWay.current.values()) stop.abort()
    }
  }, [wantPart])
  const rowAt = (index: number): Row | null =>
    parts.current.get(Math.floor(index / PART_LENGTH) + 1)?.[index % PART_LENGTH] ?? null
  return { total, problem, rowAt, want, again: () => wantPart(1) }
}

function useHeight(place: { readonly current: HTMLElement | null }): number {
  const [height, setHeight] = useState(600)
  useEffect(() => {
    const element = place.current
    if (element === null) return
    const measure = () => setHeight(Math.max(0, element.clientHeight - HEAD_HEIGHT))
    // Deferred, because a redraw could change the size again.
    const observer = new ResizeObserver(() => requestAnimationFrame(measure))
    observer.observe(element)
    return () => observer.disconnect()
  })
  return height
}

const ROW_KEYS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 }
/** In `aria-rowindex`; the head is row 1. */
const FIRST_ROW = 2
export const PART_LENGTH = 100
/** The same value as in the style sheet. */
const ROW_HEIGHT = 40
/** Including its border. */
const HEAD_HEIGHT = 42
const PARTS_MAX = 30
