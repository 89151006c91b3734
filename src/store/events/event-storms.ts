import type { Kysely, Selectable } from 'kysely'
import { parts } from '../engine/bulk.ts'
import type { Queries } from '../engine/database.ts'
import type { EventStormTable } from '../engine/tables/threats.ts'
import type { Tables } from '../engine/tables.ts'

export interface EventStorm {
  readonly topic: string
  readonly minuteMs: number
  readonly told: number
  readonly count: number
  readonly sinceMs: number
  readonly untilMs: number
  /** AddressSketches. */
  readonly addresses: string
  readonly fingerprints: string
  /** JSON: a list. */
  readonly examples: string
  /** JSON; empty if nothing exceeded the limit. */
  readonly event: string
}

/** Events that exceeded the limit for single reports. Writers hold the lock of sightings. */
export class EventStormStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  async of(topics: readonly string[], queries: Queries): Promise<ReadonlyMap<string, EventStorm>> {
    if (topics.length === 0) return new Map()
    const rows = await queries.selectFrom('event_storms').selectAll().where('topic', 'in', topics).execute()
    return new Map(rows.map((row) => [row.topic, stormOf(row)]))
  }

  /** Storms of minutes before this one that have unreported events. */
  async over(minuteMs: number, queries: Queries = this.#db): Promise<readonly EventStorm[]> {
    const rows = await queries
      .selectFrom('event_storms')
      .selectAll()
      .where('minute_ms', '<', minuteMs)
      .where('count', '>', 0)
      .orderBy('topic')
      .execute()
    return rows.map(stormOf)
  }

  /** Replaces the storms of the same topics. */
  async put(storms: readonly EventStorm[], queries: Queries): Promise<void> {
    for (const part of parts(storms)) {
      await queries
        .insertInto('event_storms')
        .values(part.map(rowOf))
        .onConflict((conflict) =>
          conflict.column('topic').doUpdateSet(({ ref }) => ({
            minute_ms: ref('excluded.minute_ms'),
            told: ref('excluded.told'),
            count: ref('excluded.count'),
            since_ms: ref('excluded.since_ms'),
            until_ms: ref('excluded.until_ms'),
            addresses: ref('excluded.addresses'),
            fingerprints: ref('excluded.fingerprints'),
            examples: ref('excluded.examples'),
            event: ref('excluded.event'),
          })),
        )
        .execute()
    }
  }
}

function stormOf(row: Selectable<EventStormTable>): EventStorm {
  const { minute_ms: minuteMs, since_ms: sinceMs, until_ms: untilMs, ...storm } = row
  return { ...storm, minuteMs, sinceMs, untilMs }
}

function rowOf({ minuteMs, sinceMs, untilMs, ...storm }: EventStorm) {
  return { ...storm, minute_ms: minuteMs, since_ms: sinceMs, until_ms: untilMs }
}
