import { sql } from 'kysely'
import type { ColumnTypes, Migration } from '../migration.ts'

/**
 * Apps, their policies, campaigns and purposes. Adds only what is missing: development versions had parts of it in 0001-schema.
 */
export const apps: Migration = async (db, types) => {
  const tables = new Map((await db.introspection.getTables()).map(({ name, columns }) => [name, columns]))
  for (const [table, column, type] of columns(types))
    if (!tables.get(table)?.some(({ name }) => name === column))
      await sql`alter table ${sql.table(table)} add column ${sql.ref(column)} ${sql.raw(type)}`.execute(db)
  if (!tables.get('policies')?.some(({ name }) => name === 'app'))
    for (const statement of policies(types).trim().split(/;\n*/).slice(0, -1))
      await sql.raw(statement).execute(db)
  for (const statement of statements(types).trim().split(/;\n*/).slice(0, -1))
    await sql.raw(statement).execute(db)
}

function columns({ key }: ColumnTypes): readonly (readonly [table: string, column: string, type: string])[] {
  return [
    ['sightings', 'app', `${key} not null default 'default'`],
    ['events', 'app', key],
    ['submissions', 'purposes', `text not null default '[]'`],
    ...WITH_APPS.map((table) => [table, 'apps', `text not null default '"*"'`] as const),
  ]
}

/** Tables of objects that belong to apps. Existing rows belong to all apps. */
const WITH_APPS = ['api_keys', 'users', 'trust', 'oauth_clients', 'webhooks', 'tasks']

/** A primary key of two columns needs another table. The policy of the first release is the organisation's. */
const policies = ({ integer, key }: ColumnTypes): string => `
alter table policies rename to policies_before;
create table policies (
  app ${key} not null,
  version ${integer} not null,
  document text not null,
  hash text not null,
  author text not null,
  restored_version ${integer},
  created_at_ms ${integer} not null,
  constraint policies_by_app primary key (app, version)
);
insert into policies (app, version, document, hash, author, restored_version, created_at_ms)
  select '*', version, document, hash, author, restored_version, created_at_ms from policies_before;
drop table policies_before;
`

const statements = ({ integer, serial, key }: ColumnTypes): string => `
create index if not exists sightings_by_app on sightings (app, number);

drop index events_by_time;
create index events_by_time on events (at_ms, number, type, category, agent, severity, confidence, app);

create table if not exists app_rollups (
  grain_ms ${integer} not null,
  app ${key} not null,
  at_ms ${integer} not null,
  counts text not null,
  constraint app_rollups_key primary key (grain_ms, app, at_ms)
);
create index if not exists app_rollups_by_time on app_rollups (grain_ms, at_ms);

create table if not exists campaigns (
  id ${key} primary key,
  found_at_ms ${integer} not null,
  last_seen_ms ${integer} not null,
  document text not null
);
create index if not exists campaigns_by_time on campaigns (found_at_ms, id);
create index if not exists campaigns_by_end on campaigns (last_seen_ms);

create table if not exists campaign_signs (
  number ${serial},
  at_ms ${integer} not null,
  document text not null
);

create table if not exists apps (
  id ${key} primary key,
  name text not null,
  team ${key},
  upstream text,
  labels text not null,
  created_at_ms ${integer} not null,
  updated_at_ms ${integer} not null
);

create table if not exists app_hosts (
  key ${key} primary key,
  pattern text not null,
  app_id ${key} not null references apps (id) on delete cascade,
  place ${integer} not null
);
create index if not exists app_hosts_by_app on app_hosts (app_id, place);
`
