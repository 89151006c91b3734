import assert from 'node:assert/strict'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { type Test, test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { COMMAND_LINE } from '../../src/manage/http/audit.ts'
import { Denials } from '../../src/manage/auth/oauth/denials.ts'
import { DpopNonces } from '../../src/manage/auth/oauth/dpop-nonces.ts'
import { Records } from '../../src/manage/auth/oauth/records.ts'
import { startCodes } from '../../src/manage/auth/people/make-user.ts'
import { rekey } from '../../src/manage/rekey.ts'
import { SEALED_COLUMNS } from '../../src/manage/sealed-columns.ts'
import { Sealer, sealedPrefix } from '../../src/manage/auth/sealer.ts'
import { Secret } from '../../src/shared/secret.ts'
import type { Database, DatabaseKind } from '../../src/store/engine/database.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import type { Store } from '../../src/store/store.ts'
import { memoryIo } from '../commands/memory-io.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { until } from '../until.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { Receiver } from './callback-receiver.ts'
import { TestManagement } from './management.ts'
import { clientFor, tokenFor } from './oauth-client.ts'

const [OLD, NEW, OTHER] = ['the old key of a test', 'the new key of a test', 'a key that is nowhere']

/** Every call of seal() in src/: where its value is kept; `null`: nowhere, a browser has it. */
const SEALS: Readonly<Record<string, readonly (string | null)[]>> = {
  'manage/a2a/push.ts': ['task_callbacks.sealed'],
  'manage/api/webhooks.ts': ['webhook_secrets.sealed'],
  'manage/auth/oauth/dpop-nonces.ts': ['oauth_records.sealed'],
  'manage/auth/oauth/records.ts': ['oauth_records.sealed'],
  'manage/auth/oauth/signing-keys.ts': ['oauth_keys.sealed'],
  'manage/auth/people/account-pages.ts': [null],
  'manage/auth/people/known-devices.ts': [null],
  'manage/auth/people/make-user.ts': ['users.totp'],
  'manage/auth/people/outside-sign-in.ts': [null, null],
  'manage/auth/people/passkeys.ts': [null],
  'manage/rekey.ts': [null],
  'manage/jobs/task-webhook.ts': ['task_callbacks.sealed'],
}

test('no place that seals a secret is missing in the list of sealed columns', async () => {
  const found = globSync('src/**/*.ts').flatMap((path) => {
    const count = readFileSync(path, 'utf8').match(/ealer\.seal\(/g)?.length ?? 0
    return count === 0 ? [] : [[path.replaceAll('\\', '/').replace(/^src\//, ''), count] as const]
  })
  assert.deepEqual(
    Object.fromEntries(found.sort()),
    Object.fromEntries(Object.entries(SEALS).map(([file, places]) => [file, places.length])),
    'say in SEALS where the value is kept, and add a new column to SEALED_COLUMNS',
  )
  const kept = new Set(Object.values(SEALS).flat())
  kept.delete(null)
  assert.deepEqual([...kept].sort(), SEALED_COLUMNS.map(({ table, column }) => `${table}.${column}`).sort())
})

for (const kind of KINDS) {
  test(`${kind}: rekey leaves no secret under the old key, while a manager runs, and all can be read`, async (t) => {
    const { storeUrl, store, manage, secrets } = await filled(t, kind)
    const places = SEALED_COLUMNS.map(({ table, column }) => `${table}.${column}`).sort()
    assert.deepEqual(
      (await sealedIn(storeUrl)).columns,
      places,
      'each column has a value, and none is unknown',
    )

    const dry = await run(storeUrl, [NEW, OLD], '--dry-run')
    assert.equal(dry.code, 0, dry.err)
    assert.match(dry.out, /would be encrypted/)
    assert.ok(!(await sealedIn(storeUrl)).keyIds.has(await idOf(NEW)))

    const done = await run(storeUrl, [NEW, OLD], '--json')
    assert.equal(done.code, 0, done.err)
    const report = JSON.parse(done.out)
    assert.deepEqual(report.problems, [])
    assert.deepEqual(report.tables.map((each: { table: string }) => each.table).sort(), [
      ...new Set(SEALED_COLUMNS.map(({ table }) => table)),
    ])
    for (const { table, total, rekeyed, failed } of report.tables)
      assert.ok(total >= 1 && rekeyed === total && failed === 0, table)
    assert.deepEqual([...(await sealedIn(storeUrl)).keyIds], [await idOf(NEW)])
    for (const text of [done.out, done.err, dry.out])
      for (const secret of [OLD, NEW, ...secrets]) assert.ok(!text.includes(secret))

    const sealer = new Sealer([new Secret(NEW)], 'none')
    for (const place of SEALED_COLUMNS)
      for (const { row, sealed } of await store.sealedValues.others(place, 'none', null, 100))
        await sealer.open(sealed, place.sealedAs(row))
    await manage.stop()
    const next = await TestManagement.start(t, { storeUrl, encryptionKeys: [new Secret(NEW)], admin: null })
    assert.deepEqual(
      next.said.filter((line) => line.includes('"error"')),
      [],
    )

    const again = await run(storeUrl, [NEW])
    assert.equal(again.code, 0, again.err)
    assert.match(again.out, /The other keys can go/)
  })

  test(`${kind}: a secret under an unknown key is named, stays as it is, and keeps nothing from the others`, async (t) => {
    const { storeUrl, manage } = await filled(t, kind)
    await manage.stop()
    const { code, out, err } = await run(storeUrl, [NEW, OTHER])
    assert.equal(code, 1)
    assert.match(out, /stayed as they were/)
    const [id, other] = [await idOf(OLD), `${await idOf(NEW)}, ${await idOf(OTHER)}`]
    assert.match(err, /webhook_secrets: .*: webhook whk_\S+ secret \S+\. Add that key/)
    assert.match(err, /users: .*: one-time codes of usr_/)
    assert.ok(err.includes(`encrypted with the key ${id}, which is not in store.encryption_keys (${other})`))
    assert.deepEqual([...(await sealedIn(storeUrl)).keyIds], [id])
    const later = await run(storeUrl, [NEW, OTHER, OLD])
    assert.equal(later.code, 0, later.err)
  })

  test(`${kind}: rekey that is stopped goes on where it was, and a value that changes meanwhile is not overwritten`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const store = await openAt(t, storeUrl)
    const sealer = new Sealer([new Secret(OLD)], 'none')
    const records = recordsOf(store, sealer)
    for (let i = 0; i < 350; i++) await records.upsert(`${i}`, { iat: i }, 3_600)
    const ring = new Sealer([new Secret(NEW), new Secret(OLD)], 'none')
    const stop = new Error('stopped')
    const place = SEALED_COLUMNS.find(({ table }) => table === 'oauth_records')!
    const begun = rekey(store, ring, {
      isDry: false,
      progress: () => {
        throw stop
      },
    })
    await assert.rejects(begun, stop)
    const left = await store.sealedValues.others(place, sealedPrefix(await idOf(NEW)), null, 1_000)
    assert.equal(left.length, 250)
    // A manager writes one anew between the look and the change.
    const [first] = left
    const changed = await ring.seal('changed', 'x')
    await store.sealedValues.replace(place, [{ from: first!, to: changed }])
    assert.equal(await store.sealedValues.replace(place, [{ from: first!, to: 'lost' }]), 0)
    const rest = await rekey(store, ring, { isDry: false, progress: () => undefined })
    assert.deepEqual(
      rest.tables.find(({ table }) => table === 'oauth_records'),
      { table: 'oauth_records', total: 350, rekeyed: 249, failed: 0 },
    )
    const read = recordsOf(store, new Sealer([new Secret(NEW)], 'none'))
    const found = Array.from({ length: 350 }, (_, i) => read.find(`${i}`).catch(() => 'the changed one'))
    assert.equal((await Promise.all(found)).filter((each) => each === 'the changed one').length, 1)
  })
}

test('the key that Gatehouse made is replaced while a gateway runs: it encrypts with the new one at once', async (t) => {
  const data = temporaryFolder(t)
  const file = join(data, 'store.key')
  const running = new Sealer([], file)
  const sealed = await running.seal('a secret', 'x')
  const [before] = await running.keyIds()
  const io = memoryIo('', { columns: 200, env: { GATEHOUSE_STORE_URL: await freshUrl('sqlite', t) } })
  await (await openAt(t, io.env['GATEHOUSE_STORE_URL']!)).close()
  assert.equal(await runCli(COMMANDS, ['rekey', '--new-key', '--data', data], io), 0, io.err)
  const ids = await running.keyIds()
  assert.equal(ids.length, 2)
  assert.equal(ids[1], before)
  assert.ok((await running.seal('another', 'x')).startsWith(sealedPrefix(ids[0]!)))
  assert.equal((await running.open(sealed, 'x')).reveal(), 'a secret')
  assert.ok(!(io.out + io.err).includes(readFileSync(file, 'utf8').split('\n')[0]!))
  writeFileSync(file, `${readFileSync(file, 'utf8')}not a key\n`)
  await assert.rejects(running.open(sealed, 'x'), {
    code: 'SEAL_KEY_UNUSABLE',
    message: /a line that is not a Gatehouse key/,
  })
})

test('--new-key is for the file: with keys in the settings it says where to put the new one', async (t) => {
  const storeUrl = await freshUrl('sqlite', t)
  await (await openAt(t, storeUrl)).close()
  const { code, err } = await run(storeUrl, [OLD], '--new-key')
  assert.equal(code, 1)
  assert.match(err, /add the new key as the first in store\.encryption_keys/)
})

/** A database in which each sealed column has a value, by a manager that runs. */
async function filled(t: Test, kind: DatabaseKind) {
  const storeUrl = await freshUrl(kind, t)
  const encryptionKeys = [new Secret(OLD)]
  const manage = await TestManagement.start(t, {
    ...{ storeUrl, encryptionKeys, knows: true, allowPrivateWebhooks: true },
  })
  const store = await openAt(t, storeUrl)
  const sealer = new Sealer(encryptionKeys, 'none')
  const receiver = await Receiver.start(t, (response) => response.writeHead(503).end())
  const made = await manage.ask('POST', '/v1/webhooks', { url: receiver.url, events: ['new_agent'] })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  const items = Array.from({ length: 1_200 }, () => ({ user_agent: 'curl/8.5.0' }))
  const task = await manage.ask('POST', '/v1/tasks/create', {
    ...{ type: 'detect', items, callback_url: receiver.url },
  })
  assert.equal(task.status, 200, JSON.stringify(task.body))
  const user = await manage.ask('POST', '/v1/users', { email: 'anna@example.com', scopes: ['read'] })
  assert.equal(user.status, 201, JSON.stringify(user.body))
  const anna = (await store.users.byEmail('anna@example.com'))!
  const codes = await startCodes({ store, sealer }, anna, COMMAND_LINE, Date.now())
  await tokenFor(manage, await clientFor(manage, {}))
  await new DpopNonces({ store, sealer, nowMs: Date.now }).secret()
  await recordsOf(store, sealer).upsert('a', { iat: 1 }, 3_600)
  return { storeUrl, store, manage, secrets: [made.body.secret as string, codes!.secret] }
}

function recordsOf(store: Store, sealer: Sealer): Records {
  const denials = new Denials(store, Date.now)
  return new Records('Session', { store, sealer, denials, nowMs: Date.now })
}

async function run(storeUrl: string, keys: readonly string[], ...argv: readonly string[]) {
  const env = { GATEHOUSE_STORE_URL: storeUrl, GATEHOUSE_STORE_ENCRYPTION_KEYS: keys.join(',') }
  const io = memoryIo('', { env, columns: 300 })
  const code = await runCli(COMMANDS, ['rekey', ...argv], io)
  return { code, out: io.out, err: io.err }
}

async function idOf(key: string): Promise<string> {
  return (await new Sealer([new Secret(key)], 'none').keyIds())[0]!
}

interface Sealed {
  readonly columns: readonly string[]
  readonly keyIds: ReadonlySet<string>
}

/** In whatever column of whatever table: what looks sealed. */
async function sealedIn(storeUrl: string): Promise<Sealed> {
  let found: Sealed | undefined
  await until(async () => {
    // A running manager may drop a partition meanwhile.
    found = await sealedNow(storeUrl).catch(unlessGone)
    return found !== undefined
  })
  return found!
}

function unlessGone(error: { readonly code?: string }): undefined {
  if (error.code !== '42P01') throw error
}

async function sealedNow(storeUrl: string): Promise<Sealed> {
  const { db, kind, close } = await openDatabase(storeUrl, null, async () => undefined)
  try {
    return await sealedOf(db, kind)
  } finally {
    await close()
  }
}

async function sealedOf(db: Database['db'], kind: DatabaseKind): Promise<Sealed> {
  const found = new Set<string>()
  const keyIds = new Set<string>()
  for (const { name: table, columns } of await db.introspection.getTables())
    for (const { name: column } of columns) {
      const text = kind === 'sqlite' ? sql`cast(${sql.ref(column)} as text)` : sql`${sql.ref(column)}::text`
      const { rows } = await sql<{ value: string }>`
        select ${text} as value from ${sql.table(table)} where ${text} like 'v1.%.%'
      `.execute(db)
      for (const { value } of rows) {
        const [, id] = /^v1\.([0-9a-f]{8})\.[\w-]{38,}$/.exec(value) ?? []
        if (id === undefined) continue
        found.add(`${table}.${column}`)
        keyIds.add(id)
      }
    }
  return { columns: [...found].sort(), keyIds }
}
