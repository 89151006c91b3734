import type { TableConditions } from './request-conditions.ts'
import { type HeldRow, NUMBERS_PER_MS } from './request-table.ts'

interface Source {
  /** `end`: the order and the limit. */
  read(conditions: TableConditions, end: string): Promise<readonly HeldRow[]>
  /** The numbers of the first and of the last request. */
  first(): Promise<number>
  last(): Promise<number>
}

export interface RequestPage {
  readonly rows: readonly HeldRow[]
  /** The next page begins beyond this number. */
  readonly next: number
  /** The time is over. */
  readonly isLate: boolean
}

/**
 * Requests that fit, in pages. It looks at a few minutes first, because most searches end there, and at a longer time each
 * time the one before it was quick to read. After `lookMs`, the last page is late.
 */
export class RequestPages {
  readonly #source: Source

  constructor(source: Source) {
    this.#source = source
  }

  /** Newest first, before this number. */
  async *newest(
    conditions: TableConditions,
    before: number | null,
    lookMs: number,
    limit: number,
  ): AsyncGenerator<RequestPage> {
    const deadlineMs = performance.now() + lookMs
    let to = Math.min(before ?? Number.MAX_SAFE_INTEGER, (await this.#source.last()) + 1)
    for (let width = FIRST_WIDTH; to > conditions.from; ) {
      const from = Math.max(conditions.from, to - width)
      const startedMs = performance.now()
      for (let isMore = true; isMore && to > conditions.from; ) {
        const rows = await this.#source.read(within(conditions, from, to), newestFirst(limit))
        isMore = rows.length === limit
        to = isMore ? rows.at(-1)![0] : from
        const isLate = performance.now() > deadlineMs && to > conditions.from
        yield { rows, next: to, isLate }
        if (isLate) return
      }
      width *= timesLonger(startedMs, deadlineMs)
    }
  }

  /** Oldest first, behind this number. */
  async *oldest(
    conditions: TableConditions,
    after: number | null,
    lookMs: number,
    limit: number,
  ): AsyncGenerator<RequestPage> {
    const deadlineMs = performance.now() + lookMs
    const end = (await this.#source.last()) + 1
    let from = Math.max(conditions.from, after === null ? await this.#source.first() : after + 1)
    for (let width = FIRST_WIDTH; from < end; ) {
      const to = Math.min(from + width, end)
      const startedMs = performance.now()
      for (let isMore = true; isMore && from < to; ) {
        const rows = await this.#source.read(within(conditions, from, to), `ORDER BY number LIMIT ${limit}`)
        isMore = rows.length === limit
        from = isMore ? rows.at(-1)![0] + 1 : to
        const isLate = performance.now() > deadlineMs && from < end
        yield { rows, next: from - 1, isLate }
        if (isLate) return
      }
      width *= timesLonger(startedMs, deadlineMs)
    }
  }
}

export function newestFirst(limit: number): string {
  return `ORDER BY number DESC LIMIT ${limit}`
}

function within({ texts, values }: TableConditions, from: number, to: number): TableConditions {
  return { texts: [...texts, 'number < {to:UInt64}'], values: { ...values, to }, from }
}

function timesLonger(startedMs: number, deadlineMs: number): number {
  const nowMs = performance.now()
  // Not longer than the rest of the time: nothing ends a page early.
  const times = (deadlineMs - nowMs) / (nowMs - startedMs)
  if (times > 4) return 4
  return times > 2 ? 2 : 1
}

/** 15 minutes. */
const FIRST_WIDTH = 900_000 * NUMBERS_PER_MS
