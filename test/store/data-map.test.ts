import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { DATA_MAP } from '../../src/store/data-map/data-map.ts'
import type { TableData } from '../../src/store/data-map/table-data.ts'
import { CLICKHOUSE_DATA } from '../../src/store/data-map/traffic-data.ts'
import { migrate } from '../../src/store/engine/migrations.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import { INTO } from '../../src/store/traffic/clickhouse/request-table.ts'
import { PRIVACY_PAGE, withDataMap } from './data-map-docs.ts'
import { freshUrl, KINDS } from './databases.ts'

const SAID = 'say in src/store/data-map/ what the column tells of a person, or that it tells nothing'

for (const kind of KINDS)
  test(`${kind}: the data map has every column of every table`, async (t) => {
    const { db, close } = await openDatabase(await freshUrl(kind, t), null, migrate)
    t.teardown(close)
    const tables = (await db.introspection.getTables()).filter(({ name }) => !NO_RECORDS.test(name))
    const found = tables.map(({ name, columns }) => [name, columns.map((column) => column.name).sort()])
    const mapped = Object.entries(DATA_MAP).map(([name, data]) => [name, columnsOf(data)])
    assert.deepEqual(Object.fromEntries(found), Object.fromEntries(mapped), SAID)
  })

test('the data map has every column of the requests in ClickHouse', async () => {
  const columns = INTO.slice(INTO.indexOf('(') + 1, -1).split(', ')
  assert.deepEqual(columnsOf(CLICKHOUSE_DATA), columns.sort(), SAID)
})

test('a table with data of persons says why, how long, and what erase does', async () => {
  for (const [name, { personal, purpose }] of Object.entries(DATA_MAP))
    assert.equal(Object.keys(personal).length > 0, purpose !== null, name)
})

test('the manual has the data map', async () => {
  const page = readFileSync(PRIVACY_PAGE, 'utf8')
  assert.equal(page, withDataMap(page), 'run node test/store/data-map-docs.ts')
})

/** Each column once: one that is named twice is found twice. */
function columnsOf({ personal, others }: TableData): readonly string[] {
  return [...Object.keys(personal), ...others].sort()
}

/** Migrations, what SQLite keeps for itself, and partitions of the Sightings. */
const NO_RECORDS = /^(?:migrations|sqlite_.*|sightings_(?:first|\d.*))$/
