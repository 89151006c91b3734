import assert from 'node:assert/strict'
import pg from 'pg'
import { type Test, test } from 'tap'
import { EventLog } from '../../src/manage/events/event-log.ts'
import { eventOf } from '../../src/manage/events/event-draft.ts'
import type { SightingEvents } from '../../src/manage/intake/ingest.ts'
import { ingestInto, NOW_MS, seen } from '../contract/seen.ts'
import { openAt, urlWithoutTables } from './databases.ts'
import { inServer } from './postgres-databases.ts'
import { entry, newKey } from './samples.ts'

test('without synchronous_commit, only Sightings that cause no event do not wait for the disk', async (t) => {
  const { store, modes } = await noted(t)
  const log = new EventLog(store)
  const events: SightingEvents = async (batch, queries) => {
    if (batch.every(({ path }) => path !== '/told')) return { count: 0, afterCommit: () => undefined }
    return { count: 1, afterCommit: await log.add([eventOf(DRAFT, NOW_MS)], queries) }
  }
  const { ingest } = ingestInto(store, { events, waitsForDisk: false })
  await ingest.take([seen(1), seen(2)])
  assert.deepEqual(await modes(), ['rollups off', 'sightings off'])
  await ingest.take([seen(3), seen(4, { path: '/told' })])
  assert.deepEqual(await modes(), ['events on', 'rollups on', 'sightings on'])
  await store.transaction(async (queries) => {
    await store.keys.add(newKey(1), queries)
    await store.audit.add(entry(1), queries)
  })
  assert.deepEqual(await modes(), ['api_keys on', 'audit on'])
  assert.equal((await store.sightings.before(null, 10)).sightings.length, 4)
})

test('with synchronous_commit, Sightings wait for the disk', async (t) => {
  const { store, modes } = await noted(t)
  await ingestInto(store, { waitsForDisk: true }).ingest.take([seen(1)])
  assert.deepEqual(await modes(), ['rollups on', 'sightings on'])
})

/** A store whose commits note the tables that they change, and whether they wait. */
async function noted(t: Test) {
  const url = await urlWithoutTables('postgres', t)
  // As a database of users has it.
  await inServer(`alter database ${new URL(url).pathname.slice(1)} reset synchronous_commit`)
  const store = await openAt(t, url)
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  t.teardown(() => client.end())
  await client.query(NOTED)
  const modes = async () => {
    const { rows } = await client.query('delete from commits returning of_table, mode')
    return [...new Set(rows.map(({ of_table, mode }) => `${of_table} ${mode}`))].sort()
  }
  return { store, modes }
}

const TABLES = ['sightings', 'rollups', 'events', 'audit', 'api_keys']
/** A deferred trigger runs in the commit, after the last statement, and is told of the partition. */
const NOTED = `
  create table commits (of_table text, mode text);
  create function note_commit() returns trigger language plpgsql as $$
  begin
    insert into commits values (regexp_replace(tg_table_name, '^sightings_.*', 'sightings'), current_setting('synchronous_commit'));
    return null;
  end $$;
  ${TABLES.map(
    (table) => `create constraint trigger noted after insert or update on ${table}
      deferrable initially deferred for each row execute function note_commit();`,
  ).join('\n')}`
const DRAFT = {
  ...({ type: 'new_agent', subject: 'agent x', agent: 'x', category: null, severity: null } as const),
  ...{ confidence: 1, app: 'default', data: {} },
}
