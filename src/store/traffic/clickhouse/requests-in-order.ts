import type { Sighting } from '../../../plane/sighting.ts'
import type { NumberedSighting, SightingPlace } from '../sightings.ts'
import type { ClickHouse, ClickHouseValue } from './clickhouse.ts'
import { type HeldRow, READ, sightingIn } from './request-table.ts'

/** Recorded requests in ClickHouse, oldest first, as sinks read them. */
export class RequestsInOrder {
  readonly #clickHouse: ClickHouse
  /** Makes the table when it is first needed. */
  readonly #make: () => Promise<void>

  constructor(clickHouse: ClickHouse, make: () => Promise<void>) {
    this.#clickHouse = clickHouse
    this.#make = make
  }

  async count(after: number): Promise<number> {
    const text = 'SELECT count() FROM requests WHERE number > {after:UInt64}'
    const [[count] = [0]] = await this.#rows<[number]>(text, { after })
    return count
  }

  async requests(range: NumberRange): Promise<readonly NumberedSighting[]> {
    const rows = await this.#between<HeldRow>(READ, range)
    return rows.map((row) => ({ number: row[0], document: sightingIn(row) }))
  }

  async places(range: NumberRange): Promise<readonly SightingPlace[]> {
    const rows = await this.#between<[number, string, number]>('number, app, seen_at_ms', range)
    return rows.map(([number, app, seenAtMs]) => ({ number, app, seenAtMs }))
  }

  /** Those with these numbers, which ascend. */
  async numbered(numbers: readonly number[]): Promise<readonly Sighting[]> {
    if (numbers.length === 0) return []
    const text = `SELECT ${READ} FROM requests WHERE number BETWEEN {first:UInt64} AND {last:UInt64}
      AND number IN {numbers:Array(UInt64)} ORDER BY number`
    const rows = await this.#rows<HeldRow>(text, { first: numbers[0]!, last: numbers.at(-1)!, numbers })
    return rows.map(sightingIn)
  }

  #between<Row extends readonly unknown[]>(columns: string, { after, last, limit }: NumberRange) {
    const text = `SELECT ${columns} FROM requests WHERE number > {after:UInt64} AND number <= {last:UInt64}
      ORDER BY number LIMIT ${limit}`
    return this.#rows<Row>(text, { after, last })
  }

  async #rows<Row extends readonly unknown[]>(
    text: string,
    values: Readonly<Record<string, ClickHouseValue>>,
  ): Promise<readonly Row[]> {
    await this.#make()
    return this.#clickHouse.rows<Row>({ text, values })
  }
}

/** Numbers above `after` up to `last`; the first ones of them. */
interface NumberRange {
  readonly after: number
  readonly last: number
  readonly limit: number
}
