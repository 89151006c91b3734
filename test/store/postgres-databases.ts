import { createHash, randomBytes } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { Store } from '../../src/store/store.ts'
import { services } from '../services/services.ts'
import type { Owner } from './databases.ts'

/**
 * The URL of a database with all tables and no rows. Making one takes 0.3 s, so the tests of a run share a few: a test
 * holds a lock on its database in the server, and the next one empties it first.
 */
export async function sharedDatabase(t: Owner): Promise<string> {
  const holder = await connected(POSTGRES)
  t.teardown(() => holder.end())
  for (let number = 0; ; number++) {
    const name = `${SHARED}${SCHEMA}_${number}`
    if (!(await isTaken(holder, name))) continue
    if (!(await isThere(holder, name))) await make(holder, name)
    else if (!(await isEmptied(name))) {
      await drop(holder, name)
      await make(holder, name)
    }
    return urlOf(name)
  }
}

/** The URL of a database without tables, which is gone when the test ends, even if it has connections. */
export async function ownDatabase(t: Owner): Promise<string> {
  const name = `gatehouse_own_${randomBytes(8).toString('hex')}`
  // From a template without connections: tests run side by side.
  await inServer(`create database ${name} template template0`)
  await inServer(withoutWaiting(name))
  t.teardown(() => inServer(`drop database ${name} with (force)`))
  return urlOf(name)
}

/** No test kills this server, so nothing waits for its disk. */
function withoutWaiting(database: string): string {
  return `alter database ${database} set synchronous_commit = off`
}

/** In the database that is always there. */
export async function inServer(statement: string): Promise<void> {
  const client = await connected(POSTGRES)
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

/** Drops the shared databases that no test holds. */
export async function dropShared(): Promise<void> {
  const client = await connected(POSTGRES)
  const { rows } = await client.query('select datname from pg_database where starts_with(datname, $1)', [
    SHARED,
  ])
  for (const { datname } of rows) if (await isTaken(client, datname)) await drop(client, datname)
  await client.end()
}

/**
 * `false`: another test holds the database, or a process that a test has left running is connected to it. The lock lasts
 * as long as the connection of the holder.
 */
async function isTaken(holder: pg.Client, name: string): Promise<boolean> {
  const { rows } = await holder.query(TAKE, [name])
  return rows[0].is_taken
}

async function isThere(holder: pg.Client, name: string): Promise<boolean> {
  return (await holder.query('select from pg_database where datname = $1', [name])).rowCount === 1
}

async function make(holder: pg.Client, name: string): Promise<void> {
  await holder.query(`create database ${name} template template0`)
  await holder.query(withoutWaiting(name))
  await (await Store.open(urlOf(name))).close()
  const client = await connected(urlOf(name))
  await holder.query(`comment on database ${name} is '${await shapeOf(client)}'`)
  await client.end()
}

async function drop(holder: pg.Client, name: string): Promise<void> {
  await holder.query(`drop database ${name} with (force)`)
}

/** `false`: a test has changed more than rows. */
async function isEmptied(name: string): Promise<boolean> {
  const client = await connected(urlOf(name))
  try {
    const { rows } = await client.query(
      'select shobj_description(oid, $1) as shape from pg_database where datname = $2',
      ['pg_database', name],
    )
    if (rows[0].shape !== (await shapeOf(client))) return false
    await client.query(EMPTY)
    return true
  } finally {
    await client.end()
  }
}

/** What migrations have made, and what they have written down about themselves. */
async function shapeOf(client: pg.Client): Promise<string> {
  return (await client.query(SHAPE)).rows[0].shape
}

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  return client
}

function urlOf(name: string): string {
  const url = new URL(POSTGRES)
  url.pathname = `/${name}`
  return url.href
}

/** A user in it may make databases. */
export const POSTGRES = services().postgres
const SHARED = 'gatehouse_shared_'

const ENGINE = join(import.meta.dirname, '../../src/store/engine')
/** Checkouts with the same tables share databases. */
const SCHEMA = globSync('**/*.ts', { cwd: ENGINE })
  .toSorted()
  .reduce((hash, file) => hash.update(readFileSync(join(ENGINE, file))), createHash('sha256'))
  .digest('hex')
  .slice(0, 8)

const TAKE = `
  select pg_try_advisory_lock(hashtextextended($1, 0))
    and not exists (select from pg_stat_activity where datname = $1 and backend_type = 'client backend') as is_taken`

/** Tables and sequences, with their columns, checks, triggers, owner and rights; users of it; migrations. */
const SHAPE = `
  select md5(concat(
    (select string_agg(concat_ws(' ', relname, relkind, relowner, relacl, relchecks, relhastriggers, columns), ','
       order by relname)
     from pg_class c, lateral (
       select count(*) as columns from pg_attribute where attrelid = c.oid and not attisdropped
     ) attributes
     where relnamespace = 'public'::regnamespace and (not relispartition or starts_with(relname, 'sightings_first'))),
    (select nspacl from pg_namespace where nspname = 'public'),
    (select string_agg(concat_ws(' ', setrole, setconfig), ',') from pg_db_role_setting
     where setdatabase = (select oid from pg_database where datname = current_database())),
    (select string_agg(concat_ws(' ', name, at_ms), ',' order by name) from migrations)
  )) as shape`

/**
 * Most tables have never had a row, and a DELETE of some rows writes less than TRUNCATE. A large table would stay large
 * for the planner, so TRUNCATE it.
 */
const EMPTY = `
  do $$
  declare each record;
  begin
    set local session_replication_role = replica; -- in any order
    for each in
      select inhrelid::regclass as name from pg_inherits join pg_class c on c.oid = inhrelid
      where inhparent = 'sightings'::regclass and relname <> 'sightings_first'
    loop
      execute format('drop table %s', each.name);
    end loop;
    for each in
      select oid::regclass as name, relkind, pg_relation_size(oid) as bytes from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'S') and relname <> 'migrations'
    loop
      if each.relkind = 'S' then perform setval(each.name, 1, false);
      elsif each.bytes > 131072 then execute format('truncate %s cascade', each.name);
      elsif each.bytes > 0 then execute format('delete from %s', each.name);
      end if;
    end loop;
  end $$`
