import { type Kysely, sql } from 'kysely'
import { parts } from '../engine/bulk.ts'
import { kindOf, type Queries } from '../engine/database.ts'
import { storedJson } from '../engine/stored.ts'
import type { Tables } from '../engine/tables.ts'

/** Erases from records that are not of one person, slice by slice. Those of requests are in SightingErasure. */
export class RecordErasure {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /**
   * Changes the data of events that have one of the texts. Blanks what receivers answered to these events. `blank`: the
   * data without the person; `null`: it has nothing of the person.
   */
  async *events(
    texts: readonly string[],
    blank: (data: string) => string | null,
    isDry: boolean,
  ): AsyncGenerator<{ readonly events: number; readonly deliveries: number }> {
    const newest = this.#db.selectFrom('events').select('number').limit(1)
    const first = (await newest.orderBy('number').executeTakeFirst())?.number
    const last = (await newest.orderBy('number', 'desc').executeTakeFirst())?.number
    if (first === undefined || last === undefined) return
    for (let from = first; from <= last; from += EVENTS) {
      const rows = await this.#db
        .selectFrom('events')
        .select(['number', 'data'])
        .where('number', '>=', from)
        .where('number', '<', from + EVENTS)
        .where(
          sql<boolean>`(${sql.join(
            texts.map((text) => has(this.#db, 'data', text)),
            sql` or `,
          )})`,
        )
        .execute()
      const changed = rows.flatMap(({ number, data }) => {
        const blanked = blank(data)
        return blanked === null ? [] : [{ number, data: blanked }]
      })
      yield await this.#db.transaction().execute((queries) => blankEvents(changed, isDry, queries))
    }
  }

  /** Threats that are counted, by the last part of their key: the address. */
  async *threats(isWanted: (address: string) => boolean, isDry: boolean): AsyncGenerator<number> {
    for (let after: string | null = ''; after !== null; ) {
      const rows: readonly { readonly key: string }[] = await this.#db
        .selectFrom('threat_windows')
        .select('key')
        .where('key', '>', after)
        .orderBy('key')
        .limit(ROWS)
        .execute()
      const keys = rows.flatMap(({ key }) => (isWanted(key.slice(key.lastIndexOf(' ') + 1)) ? [key] : []))
      if (!isDry)
        for (const part of parts(keys))
          await this.#db.deleteFrom('threat_windows').where('key', 'in', part).execute()
      yield keys.length
      after = rows.length < ROWS ? null : rows.at(-1)!.key
    }
  }

  /** Summaries of many threats. `blank`: see `events`. Writers of storms hold the lock of Sightings, as the caller does. */
  async storms(
    blankExamples: (examples: string) => string | null,
    blankEvent: (event: string) => string | null,
    isDry: boolean,
    queries: Queries,
  ): Promise<number> {
    const rows = await queries
      .selectFrom('event_storms')
      .select(['topic', 'examples', 'event'])
      .where('count', '>', 0)
      .execute()
    let count = 0
    for (const { topic, ...row } of rows) {
      const examples = blankExamples(row.examples)
      const event = row.event === '' ? null : blankEvent(row.event)
      if (examples === null && event === null) continue
      count++
      const changed = { examples: examples ?? row.examples, event: event ?? row.event }
      if (!isDry) await queries.updateTable('event_storms').set(changed).where('topic', '=', topic).execute()
    }
    return count
  }

  /** `without`: the document of a campaign without the person; `null`: it stays as it is. */
  async *campaigns(without: (document: string) => string | null, isDry: boolean): AsyncGenerator<number> {
    for (let after: string | null = ''; after !== null; ) {
      const rows: readonly { readonly id: string; readonly document: string }[] = await this.#db
        .selectFrom('campaigns')
        .select(['id', 'document'])
        .where('id', '>', after)
        .orderBy('id')
        .limit(CAMPAIGNS)
        .execute()
      let count = 0
      for (const { id, document } of rows) {
        const changed = without(document)
        if (changed === null) continue
        count++
        if (!isDry)
          await this.#db
            .updateTable('campaigns')
            .set({ document: changed })
            .where('id', '=', id)
            // The leader writes what it knows by itself.
            .where('document', '=', document)
            .execute()
      }
      yield count
      after = rows.length < CAMPAIGNS ? null : rows.at(-1)!.id
    }
  }

  /** Blanks the addresses of cases. Their later threats open new cases. */
  async cases(isWanted: (address: string) => boolean, isDry: boolean): Promise<number> {
    const some = this.#db.selectFrom('cases').select(['id', 'address']).where('address', 'is not', null)
    const ids = (await some.execute()).flatMap(({ id, address }) => (isWanted(address!) ? [id] : []))
    if (!isDry)
      for (const id of ids)
        await this.#db
          .updateTable('cases')
          .set({ address: null, identity: `erased ${id}` })
          .where('id', '=', id)
          .execute()
    return ids.length
  }

  /** Blanks the addresses of callers of the API. */
  async *auditAddresses(isWanted: (address: string) => boolean, isDry: boolean): AsyncGenerator<number> {
    for (let after: string | null = ''; after !== null; ) {
      const rows: readonly { readonly address: string | null; readonly entries: number }[] = await this.#db
        .selectFrom('audit')
        .select(({ fn }) => ['address', fn.countAll<number>().as('entries')])
        .where('address', '>', after)
        .groupBy('address')
        .orderBy('address')
        .limit(ROWS)
        .execute()
      const found = rows.filter(({ address }) => isWanted(address!))
      const addresses = found.map(({ address }) => address)
      if (!isDry && addresses.length > 0)
        await this.#db.updateTable('audit').set({ address: null }).where('address', 'in', addresses).execute()
      yield found.reduce((sum, { entries }) => sum + Number(entries), 0)
      after = rows.length < ROWS ? null : rows.at(-1)!.address
    }
  }
}

async function blankEvents(
  changed: readonly { readonly number: number; readonly data: string }[],
  isDry: boolean,
  queries: Queries,
): Promise<{ readonly events: number; readonly deliveries: number }> {
  const logs: { readonly id: string; readonly log: string }[] = []
  for (const part of parts(changed.map(({ number }) => number))) {
    const rows = await queries
      .selectFrom('deliveries')
      .select(['id', 'log'])
      .where('event_number', 'in', part)
      .execute()
    for (const { id, log } of rows) {
      const blanked = withoutAnswers(log)
      if (blanked !== null) logs.push({ id, log: blanked })
    }
  }
  if (!isDry) {
    for (const { number, data } of changed)
      await queries.updateTable('events').set({ data }).where('number', '=', number).execute()
    for (const { id, log } of logs)
      await queries.updateTable('deliveries').set({ log }).where('id', '=', id).execute()
  }
  return { events: changed.length, deliveries: logs.length }
}

/** `null`: no attempt was answered with a text. */
function withoutAnswers(log: string): string | null {
  const attempts = storedJson(log)
  if (!Array.isArray(attempts)) return null
  const isAnswered = attempts.some((attempt) => (attempt as { response?: unknown }).response !== '')
  return isAnswered
    ? JSON.stringify(attempts.map((attempt) => ({ ...(attempt as object), response: '' })))
    : null
}

/** Whether the text of a column has this one in it. */
export function has(queries: Queries, column: string, text: string) {
  const place = sql.ref(column)
  return kindOf(queries) === 'postgres'
    ? sql<boolean>`strpos(${place}, ${text}) > 0`
    : sql<boolean>`instr(${place}, ${text}) > 0`
}

/** Numbers of events that are read at once. A few milliseconds. */
const EVENTS = 2_000
const ROWS = 1_000
/** Each may have 4,096 members. */
const CAMPAIGNS = 10
