import type { Kysely, Selectable } from 'kysely'
import type { App, AppQuota } from '../../apps/app.ts'
import { hostPatternKey } from '../../wire/host.ts'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import { lockUntilCommit } from '../engine/locks.ts'
import { storedObject, storedTexts } from '../engine/stored.ts'
import type { AppTable } from '../engine/tables/apps.ts'
import type { Tables } from '../engine/tables.ts'

/** An app that was made through the API. */
export interface AppRecord extends App {
  readonly createdAtMs: number
  readonly updatedAtMs: number
}

export class AppStore {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  /** All of them, by id. One query, so that no app is seen without its hosts. */
  async all(queries: Queries = this.#db): Promise<readonly AppRecord[]> {
    return grouped(await this.#rows(queries).execute())
  }

  /** Makes all other changes of apps wait until this transaction ends. */
  lock(queries: Queries): Promise<void> {
    return lockUntilCommit(queries, this.#kind, 'apps')
  }

  async byId(id: string, queries: Queries = this.#db): Promise<AppRecord | null> {
    return grouped(await this.#rows(queries).where('apps.id', '=', id).execute())[0] ?? null
  }

  async count(queries: Queries): Promise<number> {
    const counted = queries.selectFrom('apps').select(({ fn }) => fn.countAll<number>().as('total'))
    return Number((await counted.executeTakeFirstOrThrow()).total)
  }

  /** The host patterns of all other apps. */
  async hostCount({ id }: Pick<App, 'id'>, queries: Queries): Promise<number> {
    const counted = queries
      .selectFrom('app_hosts')
      .select(({ fn }) => fn.countAll<number>().as('total'))
      .where('app_id', '!=', id)
    return Number((await counted.executeTakeFirstOrThrow()).total)
  }

  /** The first of these host patterns that another app has. */
  async takenHost(
    { id, hosts }: Pick<App, 'id' | 'hosts'>,
    queries: Queries,
  ): Promise<{ readonly pattern: string; readonly app: string } | null> {
    if (hosts.length === 0) return null
    const rows = await queries
      .selectFrom('app_hosts')
      .select(['key', 'app_id'])
      .where('key', 'in', hosts.map(hostPatternKey))
      .where('app_id', '!=', id)
      .execute()
    const owners = new Map(rows.map(({ key, app_id }) => [key, app_id]))
    const pattern = hosts.find((each) => owners.has(hostPatternKey(each)))
    return pattern === undefined ? null : { pattern, app: owners.get(hostPatternKey(pattern))! }
  }

  /** Adds the app, or replaces all of it but its time of creation. */
  async put(record: AppRecord, queries: Queries): Promise<void> {
    const { id, hosts, createdAtMs, ...rest } = record
    const changes = {
      name: rest.name,
      team: rest.team,
      upstream: rest.upstream,
      labels: JSON.stringify(rest.labels),
      quota: rest.quota === null ? null : JSON.stringify(rest.quota),
      updated_at_ms: rest.updatedAtMs,
    }
    await queries
      .insertInto('apps')
      .values({ id, created_at_ms: createdAtMs, ...changes })
      .onConflict((conflict) => conflict.column('id').doUpdateSet(changes))
      .execute()
    await queries.deleteFrom('app_hosts').where('app_id', '=', id).execute()
    if (hosts.length === 0) return
    const rows = hosts.map((pattern, place) => ({ key: hostPatternKey(pattern), pattern, app_id: id, place }))
    await queries.insertInto('app_hosts').values(rows).execute()
  }

  /** `false`: it does not exist any more. */
  async remove(id: string, queries: Queries): Promise<boolean> {
    const { numDeletedRows } = await queries.deleteFrom('apps').where('id', '=', id).executeTakeFirst()
    return numDeletedRows > 0n
  }

  /** A row for each host, or one for an app without hosts. */
  #rows(queries: Queries) {
    return queries
      .selectFrom('apps')
      .leftJoin('app_hosts', 'app_hosts.app_id', 'apps.id')
      .selectAll('apps')
      .select('app_hosts.pattern')
      .orderBy('apps.id')
      .orderBy('app_hosts.place')
  }
}

function grouped(rows: readonly (Selectable<AppTable> & { readonly pattern: string | null })[]): AppRecord[] {
  const hosts = new Map<string, string[]>()
  const records: AppRecord[] = []
  for (const row of rows) {
    const { id, name, team, upstream, pattern } = row
    const own = hosts.get(id) ?? []
    if (pattern !== null) own.push(pattern)
    if (hosts.has(id)) continue
    hosts.set(id, own)
    records.push({
      ...{ id, name, team, hosts: own, upstream },
      labels: storedTexts(row.labels),
      quota: row.quota === null ? null : (storedObject(row.quota) as AppQuota),
      createdAtMs: row.created_at_ms,
      updatedAtMs: row.updated_at_ms,
    })
  }
  return records
}
