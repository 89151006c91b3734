import { sql } from 'kysely'
import { kindOf } from '../database.ts'
import type { Migration } from '../migration.ts'

/**
 * PostgreSQL: Sightings get partitions by number, which are dropped whole when they expire. Those that are stored
 * become the first partition. SQLite stays as it is.
 */
export const partitions: Migration = async (db) => {
  if (kindOf(db) === 'sqlite') return
  for (const statement of STATEMENTS) await sql.raw(statement.replace(/\s+/g, ' ')).execute(db)
}

const INDEXES = [
  ['app', '(number >> 16), app'],
  ['host', '(number >> 16), host'],
  ['address', '(number >> 16), address_key'],
  ['profile', '(number >> 16), profile'],
] as const
/** The numbers of a partition begin at a minute since 1970, times 2^24: see SightingPartitions. */
const STATEMENTS = [
  'alter table sightings rename to sightings_first',
  'drop index sightings_by_id',
  ...INDEXES.map(([name]) => `alter index sightings_by_${name} rename to sightings_first_by_${name}`),
  'create table sightings (like sightings_first) partition by range (number)',
  'alter table sightings add primary key (number)',
  // Not unique: a unique index would need the number. Sightings are stored once because of sightings_taken.
  'create index sightings_by_id on sightings (id)',
  ...INDEXES.map(([name, columns]) => `create index sightings_by_${name} on sightings (${columns})`),
  `do $$
begin
  execute format('alter table sightings attach partition sightings_first for values from (minvalue) to (%s)',
    (extract(epoch from now())::bigint / 60) << 24);
end $$`,
  // The user of managers may not create tables: see config/postgres-roles.sql. Only users that write Sightings may call it.
  `do $do$
begin
  execute format($format$
    create function change_sightings_partition(first bigint, beyond bigint, is_wanted boolean) returns void
    language plpgsql security definer set search_path = %1$I, pg_temp set lock_timeout = '1500ms' as $body$
    declare part text := case when first = 0 then 'sightings_first' else concat_ws('_', 'sightings', first, beyond) end;
    begin
      if not (has_table_privilege(session_user, '%1$I.sightings', 'insert')
          and has_table_privilege(session_user, '%1$I.sightings', 'delete')) then
        raise insufficient_privilege using message = 'permission denied for table sightings';
      end if;
      if not is_wanted then
        execute format('drop table if exists %%I', part);
      elsif to_regclass(part) is null then
        execute format('create table %%I (like sightings)', part);
        execute format('alter table sightings attach partition %%I for values from (%%s) to (%%s)',
          part, first << 24, beyond << 24);
      end if;
    end $body$ $format$, current_schema());
end $do$`,
]
