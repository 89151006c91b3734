import assert from 'node:assert/strict'
import { test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { AddressHasher } from '../../src/plane/privacy/address-form.ts'
import { DATA_MAP } from '../../src/store/data-map/data-map.ts'
import { NOW_MS, seen } from '../contract/seen.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { freshUrl, openAt } from '../store/databases.ts'
import { memoryIo } from './memory-io.ts'

const KEY = 'the key of this test is long enough'
const ADDRESS = '203.0.113.7'

test('erase says how much it erased where, and finds hashes with the keys of the settings', async (t) => {
  const storeUrl = await freshUrl('sqlite', t)
  const data = temporaryFolder(t)
  const run = async (...argv: readonly string[]) => {
    const env = { GATEHOUSE_STORE_URL: storeUrl, GATEHOUSE_PRIVACY_KEYS: KEY }
    const io = memoryIo('', { env, columns: 200 })
    const code = await runCli(COMMANDS, ['erase', ...argv, '--data', data], io)
    return { code, out: io.out, err: io.err }
  }
  const store = await openAt(t, storeUrl)
  const addresses = [ADDRESS, new AddressHasher(KEY).hashOf(ADDRESS), '203.0.113.8']
  await store.transaction((queries) =>
    store.sightings.add(
      addresses.map((address, number) => seen(number, { address })),
      NOW_MS,
      queries,
    ),
  )
  const dry = await run('--address', ADDRESS, '--dry-run')
  assert.deepEqual([dry.code, dry.err], [0, ''])
  assert.match(dry.out, /^TABLE +ROWS +WOULD BE\nsightings +2 +deleted\n/)
  const done = await run('--address', ADDRESS, '--json')
  const { dry_run, tables } = JSON.parse(done.out)
  assert.deepEqual([dry_run, tables[0]], [false, { table: 'sightings', rows: 2, done: 'deleted' }])
  for (const { table } of tables) assert.ok(table in DATA_MAP, table)
  assert.match((await run('--user', 'anna@example.com')).out, /^TABLE +ROWS +DONE\nusers +0/)
  for (const [argv, code, said] of [
    [[], 2, /give either --address or --user/],
    [['--address', ADDRESS, '--user', 'anna@example.com'], 2, /give either --address or --user/],
    [['--address', '203.0.113.0/24'], 1, /an address must be one client/],
    [['--user', 'anna'], 1, /a user must be an e-mail address/],
  ] as const) {
    const refused = await run(...argv)
    assert.equal(refused.code, code, refused.err)
    assert.match(refused.err, said)
  }
  const { sightings } = await store.sightings.before(null, 10)
  assert.deepEqual(
    sightings.map(({ address }) => address),
    ['203.0.113.8'],
  )
})
