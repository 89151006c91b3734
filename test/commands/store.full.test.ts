import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { setTimeout as wait } from 'node:timers/promises'
import SqliteConnection from 'better-sqlite3'
import { test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { looksLikeKey } from '../../src/manage/auth/api-keys.ts'
import { MIGRATIONS } from '../../src/store/engine/migrations.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { FIRST_KEY } from '../dashboard/first-key.ts'
import { newSigner } from '../identity/signer.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { openRecorded } from '../store/recorded.ts'
import { run as runProgram, start } from './gateway-process.ts'
import { memoryIo } from './memory-io.ts'

for (const kind of KINDS)
  test(`${kind}: a key is made, listed and revoked on the command line`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const run = (...argv: readonly string[]) => runWith({ GATEHOUSE_STORE_URL: storeUrl }, ...argv)
    const made = await run('keys', 'create', '--name', 'ci \u{1f4a5}', '--access', 'read')
    assert.equal(made.code, 0, made.err)
    assert.match(made.out, /^ghk_\S+\n$/)
    assert.ok(looksLikeKey(made.out.trim()))
    const [, id = ''] = /^(key_\S+): ci .*: read, detect; plan standard; never expires/.exec(made.err) ?? []
    assert.notEqual(id, '')
    const more = ['--scopes', 'mcp,admin', '--expires', '2d', '--json']
    const second = JSON.parse((await run('keys', 'create', '--name', 'x', ...more)).out)
    assert.deepEqual([second.scopes, second.plan], [['mcp', 'admin'], 'unlimited'])
    const lifeMs = Date.parse(second.expires_at) - Date.parse(second.created_at)
    assert.equal(lifeMs, 2 * 86_400_000)
    assert.equal(second.apps, '*')
    const team = await run('keys', 'create', '--name', 'team', '--access', 'read', '--app', 'default')
    assert.match(team.err, /: read, detect; apps default; plan standard/)
    await run('keys', 'revoke', /^key_[^:]+/.exec(team.err)![0])
    const listed = JSON.parse((await run('keys', 'list', '--json')).out)
    assert.deepEqual(listed.map((key: { id: string }) => key.id).sort(), [id, second.id].sort())
    const table = await run('keys', 'list')
    assert.match(table.out, /^ID +NAME +SCOPES/)
    for (const { out, err } of [table, made]) assert.ok(!(out + err).includes(second.key))
    assert.ok(!table.out.includes(made.out.trim()))
    assert.equal((await run('keys', 'revoke', id)).code, 0)
    const again = await run('keys', 'revoke', id)
    assert.deepEqual([again.code, again.out], [1, ''])
    assert.match(again.err, /there is no key key_/)
    const store = await openAt(t, storeUrl)
    const { items } = await store.audit.list({ page: 1, limit: 50 })
    assert.deepEqual(items.map(({ action, principal }) => `${principal} ${action}`).sort(), [
      'command-line createKey',
      'command-line createKey',
      'command-line createKey',
      'command-line revokeKey',
      'command-line revokeKey',
    ])
    assert.ok(!JSON.stringify(items).includes(second.key))
  })

for (const kind of KINDS)
  test(`${kind}: an OAuth client is made, listed and deleted on the command line`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const run = (...argv: readonly string[]) => runWith({ GATEHOUSE_STORE_URL: storeUrl }, 'clients', ...argv)
    const made = await run('create', '--name', 'ci', '--scopes', 'read,detect')
    assert.equal(made.code, 0, made.err)
    assert.match(made.out, /^ghs_\S+\n$/)
    const [, id = ''] =
      /^(cli_\S+): ci: read, detect; by client_credentials; plan standard/.exec(made.err) ?? []
    const folder = temporaryFolder(t)
    const jwks = join(folder, 'jwks.json')
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    writeFileSync(jwks, JSON.stringify({ keys: [publicKey.export({ format: 'jwk' })] }))
    const redirects = ['--redirect-uri', 'https://a.example/', '--redirect-uri', 'http://127.0.0.1/cb']
    const grants = ['--grants', 'authorization_code,refresh_token', ...redirects]
    const more = await run(
      'create',
      '--name',
      'app',
      '--scopes',
      'admin',
      ...grants,
      '--jwks',
      jwks,
      '--json',
    )
    const second = JSON.parse(more.out)
    assert.deepEqual(
      [second.client_secret, second.token_endpoint_auth_method, second.plan, second.redirect_uris.length],
      [undefined, 'private_key_jwt', 'unlimited', 2],
    )
    const listed = JSON.parse((await run('list', '--json')).out)
    assert.deepEqual(
      listed.map((each: { client_id: string }) => each.client_id).sort(),
      [id, second.client_id].sort(),
    )
    const table = await run('list')
    assert.match(table.out, /^ID +NAME +SCOPES +APPS +GRANTS/)
    assert.ok(!table.out.includes('ghs_'))
    assert.equal((await run('delete', id)).code, 0)
    const again = await run('delete', id)
    assert.deepEqual([again.code, again.out], [1, ''])
    assert.match(again.err, /there is no client cli_/)
    const store = await openAt(t, storeUrl)
    assert.deepEqual(
      (await store.oauthDenials.since(0, Date.now())).map((denial) => [denial.kind, denial.id]),
      [['client', id]],
    )
    for (const [words, argv] of [
      ['--name is missing', ['--scopes', 'read']],
      ['--scopes is missing', ['--name', 'x']],
      [
        'did you mean "client_credentials"',
        ['--name', 'x', '--scopes', 'read', '--grants', 'client_credential'],
      ],
      ['redirect_uris', ['--name', 'x', '--scopes', 'read', '--grants', 'authorization_code']],
      [
        'redirect_uris/0 must be https',
        [
          '--name',
          'x',
          '--scopes',
          'read',
          '--grants',
          'authorization_code',
          '--redirect-uri',
          'http://a.example/',
        ],
      ],
      ['holds no JWK Set', ['--name', 'x', '--scopes', 'read', '--jwks', join(folder, 'none')]],
    ] as const) {
      const wrong = await run('create', ...argv)
      assert.deepEqual([wrong.code, wrong.out], [2, ''], words)
      assert.ok(wrong.err.includes(words), wrong.err)
    }
  })

for (const kind of KINDS)
  test(`${kind}: an agent is trusted, listed and removed on the command line`, async (t) => {
    const folder = temporaryFolder(t)
    const storeUrl = await freshUrl(kind, t)
    const run = (...argv: readonly string[]) => runWith({ GATEHOUSE_STORE_URL: storeUrl }, 'trust', ...argv)
    const [agent, key] = ['https://agent.example/identity.json', newSigner()]
    const write = (name: string, value: unknown) => writeFileSync(join(folder, name), JSON.stringify(value))
    write('client.jwk', key.jwk)
    write('private.jwk', key.privateKey.export({ format: 'jwk' }))
    write('document.json', { client_id: 'https://other.example/', public_key: key.jwk })
    write('list.json', [])
    const file = (name: string) => join(folder, name)
    const made = await run('add', agent, '--scopes', 'read,detect', '--name', 'bot \u{1f4a5}')
    assert.deepEqual([made.code, made.err], [0, ''])
    assert.match(made.out, /^trs_\S+\n$/)
    const second = JSON.parse(
      (await run('add', file('client.jwk'), '--scopes', 'mcp', '--plan', 'free', '--json')).out,
    )
    assert.deepEqual([second.thumbprint, second.scopes, second.plan], [key.key.thumbprint, ['mcp'], 'free'])
    assert.equal((await run('add', file('document.json'), '--scopes', 'read')).code, 0)
    for (const [code, words, ...argv] of [
      [1, 'is already trusted', agent, '--scopes', 'read'],
      [1, 'jwk/d is private', file('private.jwk'), '--scopes', 'read'],
      [1, 'does not contain a JSON object', file('list.json'), '--scopes', 'read'],
      [1, 'no such file', file('nothing'), '--scopes', 'read'],
      [1, 'must be a URL with https://', 'http://agent.example/', '--scopes', 'read'],
      [2, '--scopes is missing', agent],
      [2, 'did you mean "read"', agent, '--scopes', 'raed'],
      [2, '--name must have', agent, '--scopes', 'read', '--name', ''],
    ] as const) {
      const refused = await run('add', ...argv)
      assert.deepEqual([refused.code, refused.out], [code, ''], words)
      assert.ok(refused.err.includes(words), refused.err)
    }
    const listed = JSON.parse((await run('list', '--json')).out)
    assert.deepEqual(listed.map((each: { agent_id?: string }) => each.agent_id).sort(), [
      agent,
      'https://other.example',
      undefined,
    ])
    assert.match((await run('list')).out, /^ID +AGENT OR KEY +NAME +SCOPES/)
    assert.equal((await run('remove', second.id)).code, 0)
    assert.match((await run('remove', second.id)).err, /there is no entry trs_/)
    const { items } = await (await openAt(t, storeUrl)).audit.list({ page: 1, limit: 50 })
    assert.deepEqual(items.map(({ action }) => action).sort(), [
      ...Array(3).fill('createTrust'),
      'deleteTrust',
    ])
  })

test('what is wrong with a key that is asked for is said, and no database made for it', async (t) => {
  const folder = temporaryFolder(t)
  const data = join(folder, 'data')
  for (const [words, argv] of [
    ['--name is missing', ['--access', 'read']],
    ['--access or --scopes', ['--name', 'x']],
    ['--access or --scopes', ['--name', 'x', '--access', 'read', '--scopes', 'read']],
    ['did you mean "read"', ['--name', 'x', '--scopes', 'read,raed']],
    ['did you mean "admin"', ['--name', 'x', '--access', 'admn']],
    ['is over already', ['--name', 'x', '--access', 'read', '--expires', '2020-01-01T00:00:00Z']],
    ['--expires must be', ['--name', 'x', '--access', 'read', '--expires', 'tomorrow']],
    ['--expires must be', ['--name', 'x', '--access', 'read', '--expires', '2027-02-31']],
    ['--name must have', ['--name', 'a\u0000b', '--access', 'read']],
    ['--name must have', ['--name', '', '--access', 'read']],
    ['--plan is one of', ['--name', 'x', '--access', 'read', '--plan', 'gold']],
  ] as const) {
    const { code, out, err } = await runWith({}, 'keys', 'create', ...argv, '--data', data)
    assert.deepEqual([code, out], [2, ''], words)
    assert.ok(err.includes(words), err)
  }
  for (const argv of [
    ['keys', 'list'],
    ['keys', 'revoke', 'key_x'],
    ['backup', join(folder, 'x')],
  ]) {
    const { code, err } = await runWith({}, ...argv, '--data', data)
    assert.equal(code, 1)
    assert.match(err, /the database .*data.gatehouse\.db does not exist/)
  }
  assert.deepEqual(readdirSync(folder), [])
})

test('keys, a backup and a restore, beside a gateway that runs and is written to', async (t) => {
  const folder = temporaryFolder(t)
  writeFileSync(
    join(folder, 'g.yaml'),
    `proxy: {upstream: "http://127.0.0.1:9", listen: "127.0.0.1:0", workers: 1}
manage: {listen: "127.0.0.1:0", admin_key: ${ADMIN_KEY}}\n`,
    { mode: 0o600 },
  )
  const gatehouse = (...argv: readonly string[]) => runProgram(folder, ...argv, '--config', 'g.yaml')
  const { manage, stop, said } = await start(t, folder, 'up')
  const key = (await gatehouse(...FIRST_KEY.split(' ').slice(1))).trim()
  const ask = async (method: string, path: string, authorization: string, body?: unknown) => {
    const response = await fetch(`http://${manage}/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${authorization}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? null : JSON.parse(text) }
  }
  assert.equal((await ask('GET', '/keys', key)).status, 200)
  assert.equal((await ask('GET', '/keys', ADMIN_KEY)).status, 200)
  assert.match(await (await fetch(`http://${manage}/metrics`)).text(), /^gatehouse_store_up 1$/m)

  const other = JSON.parse(await gatehouse('keys', 'create', '--name', 'x', '--access', 'admin', '--json'))
  assert.equal((await ask('GET', '/keys', other.key)).status, 200)
  await gatehouse('keys', 'revoke', other.id)
  await wait(600)
  assert.equal((await ask('GET', '/keys', other.key)).status, 401)

  const acknowledged: string[] = []
  const statuses = new Set<number>()
  let isWriting = true
  const writing = (async () => {
    while (isWriting) {
      const { status, body } = await ask('POST', '/keys', key, {
        name: `n${acknowledged.length}`,
        access: 'read',
      })
      statuses.add(status)
      if (status === 201) acknowledged.push(body.id)
    }
  })()
  /** However slow the machine is. */
  const another = async () => {
    const { length } = acknowledged
    while (acknowledged.length === length) await Promise.race([wait(10), writing])
  }
  await another()
  await gatehouse('backup', 'one.db')
  await another()
  const after = acknowledged.length
  await gatehouse('backup', 'one.db', '--force', '--json')
  await another()
  await gatehouse('restore', 'one.db')
  await another()
  isWriting = false
  await writing
  assert.deepEqual([...statuses], [201])
  const copied = new SqliteConnection(join(folder, 'one.db'), { readonly: true })
  const ids = (database: SqliteConnection.Database) =>
    (database.prepare('select id from api_keys where name like ?').all('n%') as { id: string }[]).map(
      ({ id }) => id,
    )
  const inCopy = ids(copied)
  copied.close()
  // All before it began, and none that was not there: what is in it is a beginning of what was written.
  assert.deepEqual(new Set(inCopy), new Set(acknowledged.slice(0, inCopy.length)))
  assert.ok(inCopy.length >= after)
  const live = new SqliteConnection(join(folder, 'data', 'gatehouse.db'))
  t.teardown(() => live.close())
  const inLive = new Set(ids(live))
  assert.ok(inCopy.every((id) => inLive.has(id)))
  assert.ok(inLive.has(acknowledged.at(-1)!)) // written after the restore
  assert.ok(inLive.size < acknowledged.length) // and what came between is gone
  assert.equal(live.pragma('integrity_check', { simple: true }), 'ok')
  const { body } = await ask('GET', '/audit?action=restoreBackup', key)
  assert.equal(body.total, 1)
  assert.deepEqual(
    readdirSync(join(folder, 'data')).filter((name) => name.includes('draft') || name.includes('damaged')),
    [],
  )

  // The worst that can happen to it, while the gateway has it open.
  live.pragma('wal_checkpoint(truncate)')
  live.close()
  writeFileSync(join(folder, 'data', 'gatehouse.db'), 'x'.repeat(50_000))
  await wait(600) // so long a key is remembered
  const damaged = await ask('GET', '/keys', key)
  assert.deepEqual([damaged.status, damaged.body?.code], [503, 'unavailable'])
  await gatehouse('restore', 'one.db')
  assert.equal((await ask('GET', '/keys', key)).status, 200)
  assert.equal((await ask('POST', '/keys', key, { name: 'last', access: 'read' })).status, 201)
  assert.equal(
    readdirSync(join(folder, 'data')).filter((name) => name.includes('.damaged-')).length > 0,
    true,
  )
  await stop()
  assert.ok(!said().includes(key) && !said().includes(ADMIN_KEY))
  const kept: readonly { readonly name: string; readonly last_used_at: string | null }[] = JSON.parse(
    await gatehouse('keys', 'list', '--json'),
  )
  assert.notEqual(kept.find(({ name }) => name === 'admin')?.last_used_at, null)
  assert.ok(!readFileSync(join(folder, 'data', 'gatehouse.db'), 'latin1').includes(ADMIN_KEY))
})

test('settings, policy, accepted signatures and what is looked up follow a restore', async (t) => {
  const folder = temporaryFolder(t)
  const gatehouse = (...argv: readonly string[]) => runProgram(folder, ...argv, '--config', 'g.yaml')
  writeFileSync(
    join(folder, 'g.yaml'),
    `proxy: {upstream: "http://127.0.0.1:9", listen: "127.0.0.1:0", workers: 1}
manage: {listen: "127.0.0.1:0", admin_key: ${ADMIN_KEY}}\n`,
    { mode: 0o600 },
  )
  const { manage, stop } = await start(t, folder, 'up')
  const ask = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(`http://${manage}/v1${path}`, {
      method,
      headers: {
        ...{ authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
        ...(method === 'PUT' ? { 'if-match': '*' } : {}),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
    const answer = (await response.json()) as any
    assert.equal(response.status, 200, JSON.stringify(answer))
    return answer
  }
  const ja4 = 't13d4242h2_424242424242_424242424242'
  const policy = (name: string) => ({ rules: [{ name, when: {}, action: 'pass' }] })
  const now = async () => {
    const { policy: inForce } = await ask('GET', '/policy')
    const { settings } = await ask('GET', '/settings')
    const { agent_id } = await ask('POST', '/detect', { ja4 })
    const limit = settings.find((each: { name: string }) => each.name === 'limits.free_per_day')
    return [inForce.rules[0].name, limit.value, agent_id]
  }
  const until = async (...wanted: readonly unknown[]) => {
    while (!isDeepStrictEqual(await now(), wanted)) await wait(20)
  }
  await ask('PUT', '/policy', policy('a'))
  await gatehouse('backup', 'one.db')
  await ask('PUT', '/policy', policy('b'))
  await ask('PATCH', '/settings', { 'limits.free_per_day': 4242 })
  const submission = { fingerprint: ja4, type: 'ja4', agent_name: 'Acme Bot' }
  const { submissions } = await ask('POST', '/signatures/submit', submission)
  await ask('POST', `/submissions/${submissions[0].id}/review`, { decision: 'accept' })
  await until('b', 4242, 'acme-bot')
  await gatehouse('backup', 'two.db')
  await gatehouse('restore', 'one.db')
  await until('a', 1000, null)
  await ask('PUT', '/policy', policy('c')) // the second one, as is b
  await gatehouse('restore', 'two.db')
  const fromMs = performance.now()
  await until('b', 4242, 'acme-bot')
  t.comment(`all follows a restore in ${Math.round(performance.now() - fromMs)} ms`)
  await stop()
})

test('a backup is complete or missing, and only a backup is restored', async (t) => {
  const folder = temporaryFolder(t)
  const [data, copy] = [join(folder, 'data'), join(folder, 'copy.db')]
  const run = (...argv: readonly string[]) => runWith({}, ...argv, '--data', data)
  await run('keys', 'create', '--name', 'kept', '--access', 'admin')
  const isSaid = async (words: RegExp, ...argv: readonly string[]) => {
    const { code, err } = await run(...argv)
    assert.equal(code, 1, `${argv.join(' ')}: ${err}`)
    assert.match(err, words)
  }
  assert.equal((await run('backup', copy)).code, 0)
  assert.equal(statSync(copy).mode & 0o777, 0o600)
  await isSaid(/copy\.db exists; --force/, 'backup', copy)
  await isSaid(/is the database itself/, 'backup', '--force', join(data, 'gatehouse.db'))
  await isSaid(/is the database itself/, 'restore', join(data, 'gatehouse.db'))
  await isSaid(/nowhere.x\.db cannot be written \(ENOENT\)/, 'backup', join(folder, 'nowhere', 'x.db'))
  mkdirSync(join(folder, 'folder'))
  await isSaid(/cannot be written|is there already/, 'backup', '--force', join(folder, 'folder'))
  await isSaid(/there is no .*missing/, 'restore', join(folder, 'missing'))

  const made = async (name: string, work: (path: string) => void) => {
    const path = join(folder, name)
    assert.equal((await run('backup', path)).code, 0)
    work(path)
    return path
  }
  const text = await made('text', (path) => writeFileSync(path, 'no database at all, by far\n'.repeat(100)))
  await isSaid(/text is damaged, or no database/, 'restore', text)
  const short = await made('short', (path) => truncateSync(path, statSync(path).size - 5000))
  await isSaid(/damaged/, 'restore', short)
  const empty = await made('empty', (path) => truncateSync(path, 0))
  await isSaid(/is not a Gatehouse database/, 'restore', empty)
  const foreign = join(folder, 'foreign')
  new SqliteConnection(foreign).exec('create table x (y)').close()
  await isSaid(/is not a Gatehouse database/, 'restore', foreign)
  const newer = await made('newer', (path) => {
    new SqliteConnection(path).exec("insert into migrations values ('9999-later', 0)").close()
  })
  await isSaid(/written by a later version \(9999-later\)/, 'restore', newer)
  assert.match((await run('keys', 'list')).out, /kept/)
  assert.deepEqual(readdirSync(data), ['gatehouse.db'])

  // No file yet, or a file that is not a database.
  const elsewhere = join(folder, 'elsewhere')
  mkdirSync(elsewhere)
  assert.equal((await runWith({}, 'restore', copy, '--data', elsewhere)).code, 0)
  assert.match((await runWith({}, 'keys', 'list', '--data', elsewhere)).out, /kept/)
})

test('a backup is restored where there is a database, and where there is none', async (t) => {
  const folder = temporaryFolder(t)
  const first = [...MIGRATIONS.keys()][0]!
  const copy = (await openRecorded(first, 'sqlite', t)).slice('sqlite:'.length)
  for (const name of ['new', 'there']) {
    const data = join(folder, name)
    mkdirSync(data)
    if (name === 'there')
      await runWith({}, 'keys', 'create', '--name', 'x', '--access', 'read', '--data', data)
    const { code, err } = await runWith({}, 'restore', copy, '--data', data)
    assert.equal(code, 0, err)
    assert.deepEqual(readdirSync(data), ['gatehouse.db'])
    const file = new SqliteConnection(join(data, 'gatehouse.db'))
    const values = (query: string) => file.prepare(query).pluck().all()
    assert.deepEqual(values('select name from migrations order by name'), [...MIGRATIONS.keys()])
    assert.deepEqual(values('select name from api_keys'), ['key 1'])
    assert.equal(file.pragma('integrity_check', { simple: true }), 'ok')
    file.close()
  }
})

test('a backup from before the first release is refused, and the database stays', async (t) => {
  const folder = temporaryFolder(t)
  const copy = join(folder, 'old.db')
  new SqliteConnection(copy)
    .exec(
      "create table migrations (name text primary key, at_ms integer not null); insert into migrations values ('0001-keys', 0)",
    )
    .close()
  await runWith({}, 'keys', 'create', '--name', 'kept', '--access', 'read', '--data', folder)
  const { code, err } = await runWith({}, 'restore', copy, '--data', folder)
  assert.equal(code, 1)
  assert.match(err, /before the first release/)
  assert.match((await runWith({}, 'keys', 'list', '--data', folder)).out, /kept/)
})

test('PostgreSQL has tools of its own', async (t) => {
  const env = { GATEHOUSE_STORE_URL: await freshUrl('postgres', t) }
  for (const [command, tool] of [
    ['backup', /pg_dump/],
    ['restore', /pg_restore/],
  ] as const) {
    const { code, err } = await runWith(env, command, 'x.db')
    assert.equal(code, 1)
    assert.match(err, tool)
  }
})

async function runWith(env: Record<string, string>, ...argv: readonly string[]) {
  const io = memoryIo('', { env, columns: 200 })
  const code = await runCli(COMMANDS, argv, io)
  return { code, out: io.out, err: io.err }
}

const ADMIN_KEY = 'a-key-that-is-in-no-database'
