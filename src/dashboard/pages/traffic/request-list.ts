import { ask } from '../../api/ask.ts'
import type { Operations, Request } from '../../api/operations.ts'
import { PART_LENGTH, type PartOfRows } from '../../parts/long-table.tsx'

export type RequestQuery = Omit<Operations['listRequests']['query'], 'cursor' | 'limit'>

/** A list that is read with cursors, in pages of one length. Its total grows as it is read. */
export class RequestList {
  readonly #query: RequestQuery
  /** The cursors at which pages begin, as far as they are known. */
  readonly #starts: (string | undefined)[] = [undefined]
  #total = 0
  #isWhole = false

  constructor(query: RequestQuery) {
    this.#query = query
  }

  /** Pages count from 1. A page must have been reached through the one before it. */
  async load(page: number, signal: AbortSignal): Promise<PartOfRows<Request>> {
    const rows: Request[] = []
    let cursor = this.#starts[page - 1]
    if (page > this.#starts.length) return { rows, total: this.#total }
    // One answer may hold few requests although more follow: the server looks at so many at a time.
    for (let isEnd = false; !isEnd; ) {
      const limit = PART_LENGTH - rows.length
      const at = cursor === undefined ? {} : { cursor }
      const answer = await ask('listRequests', { query: { ...this.#query, ...at, limit } }, { signal })
      rows.push(...answer.requests)
      cursor = answer.next_cursor ?? undefined
      isEnd = cursor === undefined || rows.length === PART_LENGTH
    }
    if (cursor === undefined) {
      this.#isWhole = true
      this.#total = (page - 1) * PART_LENGTH + rows.length
    } else {
      this.#starts[page] = cursor
      // The next page is loaded when it is scrolled to.
      if (!this.#isWhole) this.#total = this.#starts.length * PART_LENGTH
    }
    return { rows, total: this.#total }
  }
}
