import { type RawBuilder, sql } from 'kysely'
import { type AppList, type AppScope, ALL_APPS } from '../../apps/app-scope.ts'
import type { DatabaseKind } from './database.ts'
import { storedJson, storedTexts } from './stored.ts'
import type { Tables } from './tables.ts'

/** A column of the form of `AppList`. */
type AppListColumn = `${keyof Tables}.apps`

export function storedApps(text: string): AppList {
  return storedJson(text) === ALL_APPS ? ALL_APPS : storedTexts(text)
}

/** Whether the list names this app. `*` does not: it is about the whole installation. */
export function rowNames(kind: DatabaseKind, column: AppListColumn, app: string): RawBuilder<boolean> {
  const list = sql.ref(column)
  if (kind === 'postgres') return sql<boolean>`${list}::jsonb @> ${JSON.stringify([app])}::jsonb`
  return sql<boolean>`${list} <> '"*"' and exists (select 1 from json_each(${list}) where value = ${app})`
}

/** `isWithin` of app-scope.ts as a condition on rows. */
export function rowIsWithin(kind: DatabaseKind, column: AppListColumn, scope: AppScope): RawBuilder<boolean> {
  if (scope === ALL_APPS) return sql<boolean>`1 = 1`
  const list = sql.ref(column)
  const apps = JSON.stringify([...scope])
  const isList = sql`${list} <> '[]' and ${list} <> '"*"'`
  if (kind === 'postgres') return sql<boolean>`${isList} and ${list}::jsonb <@ ${apps}::jsonb`
  return sql<boolean>`${isList} and not exists (
    select 1 from json_each(${list}) as given
    where given.value not in (select value from json_each(${apps})))`
}
