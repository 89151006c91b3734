import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { sealedAs } from '../../src/manage/auth/people/make-user.ts'
import { PasswordHasher } from '../../src/manage/auth/people/password-hash.ts'
import { Sealer } from '../../src/manage/auth/sealer.ts'
import { GATEHOUSE, skipped, temporaryFolder } from '../e2e/programs.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { memoryIo } from './memory-io.ts'

test('who a user is elsewhere, on the command line', async (t) => {
  const storeUrl = await freshUrl('sqlite', t)
  const data = temporaryFolder(t)
  const there = { GATEHOUSE_AUTH_OPENID_ISSUER: 'https://id.example', GATEHOUSE_AUTH_OPENID_CLIENT_ID: 'x' }
  const run = (env: Record<string, string>, ...argv: readonly string[]) =>
    runWith('', { GATEHOUSE_STORE_URL: storeUrl, ...env }, 'users', ...argv, '--data', data)
  const id = (await run({}, 'create', 'anna@x', '--access', 'read', '--without-password')).out.trim()
  const bound = await run(there, 'openid', '--subject', '248289761001', 'anna@x')
  assert.deepEqual(
    [bound.code, bound.err],
    [0, `${id}: anna@x: linked to 248289761001 at https://id.example/\n`],
  )
  const [shown] = JSON.parse((await run({}, 'list', '--json')).out)
  assert.deepEqual(shown.openid, { issuer: 'https://id.example/', subject: '248289761001' })
  await run({}, 'create', 'ben@x', '--access', 'read', '--without-password')
  const taken = await run(there, 'openid', '--subject', '248289761001', 'ben@x')
  assert.match(taken.err, /another user is 248289761001 there/)
  const off = await run({}, 'openid', '--off', 'anna@x')
  assert.deepEqual([off.code, off.err], [0, `${id}: anna@x: link removed, and signed out\n`])
  for (const [env, argv, said] of [
    [{}, ['--subject', 'x', 'anna@x'], /auth\.openid\.issuer is not set/],
    [there, ['anna@x'], /give either --subject or --off/],
    [there, ['--off', '--subject', 'x', 'anna@x'], /give either --subject or --off/],
    [there, ['--subject', 'é', 'anna@x'], /255 characters of ASCII/],
    [there, ['--subject', 'x', 'eve@x'], /there is no user eve@x/],
  ] as const) {
    const refused = await run(env, 'openid', ...argv)
    assert.notEqual(refused.code, 0)
    assert.match(refused.err, said)
  }
})

for (const kind of KINDS)
  test(`${kind}: users on the command line, their passwords and codes`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const data = temporaryFolder(t)
    const run = (stdin: string, ...argv: readonly string[]) =>
      runWith(stdin, { GATEHOUSE_STORE_URL: storeUrl }, 'users', ...argv, '--data', data)
    const made = await run(`${PASSWORD}\r\nmore\n`, 'create', 'Anna@example.com', '--access', 'read')
    assert.equal(made.code, 0, made.err)
    const id = made.out.trim()
    assert.equal(made.err, `${id}: anna@example.com: read, detect\n`)
    const store = await openAt(t, storeUrl)
    const hasPassword = async (password: string) =>
      new PasswordHasher().isRight(password, (await store.users.byEmail('anna@example.com'))!.password)
    assert.equal(await hasPassword(PASSWORD), true)
    const again = await run(PASSWORD, 'create', 'anna@EXAMPLE.com', '--access', 'read')
    assert.deepEqual([again.code, again.out], [1, ''])
    assert.match(again.err, /there is a user anna@example\.com already/)
    const unknown = await run(PASSWORD, 'create', 'eve@x', '--access', 'read', '--app', 'defualt')
    assert.equal(unknown.code, 2)
    assert.match(unknown.err, /--app: unknown app "defualt" \(did you mean "default"\?\)/)
    const limited = await run('', 'change', id, '--app', 'default')
    assert.equal(limited.err, `${id}: anna@example.com: apps default\n`)
    assert.deepEqual((await store.users.byId(id))?.apps, ['default'])
    await run('', 'change', id, '--app', '*')
    const json = ['--scopes', 'mcp,admin', '--without-password', '--json']
    const ben = JSON.parse((await run('', 'create', 'ben@x', ...json)).out)
    assert.deepEqual([ben.scopes, ben.has_password], [['admin', 'mcp'], false])
    assert.match((await run('', 'list')).out, /^ID +EMAIL +SCOPES +APPS +PASSWORD +CODES +STATE +CREATED\n/)
    const listed = JSON.parse((await run('', 'list', '--json')).out)
    assert.deepEqual(listed.map((user: { id: string }) => user.id).sort(), [id, ben.id].sort())

    const changed = await run('another phrase of words', 'password', id)
    assert.equal(changed.code, 0, changed.err)
    assert.equal(await hasPassword('another phrase of words'), true)
    assert.ok((await store.users.byId(id))!.signedInSinceMs > 0)

    const codes = await run('', 'codes', 'anna@example.com')
    const [uri = '', ...recovery] = codes.out.trim().split('\n')
    assert.match(
      uri,
      /^otpauth:\/\/totp\/Gatehouse:anna%40example\.com\?secret=[A-Z2-7]{32}&issuer=Gatehouse$/,
    )
    assert.equal(recovery.length, 10)
    const { codes: sealed } = (await store.users.byEmail('anna@example.com'))!
    const secret = await new Sealer([], join(data, 'store.key')).open(sealed!, sealedAs(id))
    assert.equal(secret.reveal(), new URL(uri).searchParams.get('secret'))
    assert.equal((await run('', 'codes', '--off', id)).code, 0)
    assert.equal((await store.users.byId(id))?.hasCodes, false)

    const less = await run('', 'change', id, '--scopes', 'read', '--disable')
    assert.deepEqual([less.code, less.err], [0, `${id}: anna@example.com: read; disabled\n`])
    const { isDisabled, scopes } = (await store.users.byId(id))!
    assert.deepEqual([isDisabled, scopes], [true, ['read']])
    assert.match((await run('', 'list')).out, /disabled/)
    assert.equal((await run('', 'change', id, '--enable')).err, `${id}: anna@example.com: enabled\n`)
    assert.equal((await store.users.byId(id))?.isDisabled, false)
    for (const wrong of [
      [],
      ['--disable', '--enable'],
      ['--scopes', 'raed'],
      ['--access', 'read', '--scopes', 'read'],
    ])
      assert.equal((await run('', 'change', id, ...wrong)).code, 2)

    for (const code of [0, 1]) assert.equal((await run('', 'delete', id)).code, code)
    for (const name of ['usr_x', 'unknown@example.com', 'a\u0000b'])
      for (const argv of [['delete'], ['codes'], ['password'], ['change', '--disable']]) {
        const { code, err } = await run(PASSWORD, ...argv, name)
        assert.equal(code, 1)
        assert.match(err, /there is no user/)
      }
    const { items } = await store.audit.list({ page: 1, limit: 50 })
    const actions = [
      'changePassword',
      'createUser',
      'createUser',
      'deleteUser',
      'startOneTimeCodes',
      'stopOneTimeCodes',
      'updateUser',
      'updateUser',
      'updateUser',
      'updateUser',
    ]
    assert.deepEqual(items.map(({ action }) => action).sort(), actions)
    const said = JSON.stringify(items) + [made, again, changed].map(({ out, err }) => out + err).join('')
    for (const word of [PASSWORD, 'argon2', secret.reveal(), ...recovery])
      assert.ok(!said.includes(word), word)
  })

test('what is wrong is said, without the password, and no database made for it', async (t) => {
  const folder = temporaryFolder(t)
  for (const [stdin, exitCode, words, ...argv] of [
    [PASSWORD, 2, 'EMAIL must be', 'anna', '--access', 'read'],
    [PASSWORD, 2, 'EMAIL is missing'],
    [PASSWORD, 2, '--access or --scopes', 'a@b'],
    [PASSWORD, 2, 'did you mean "read"', 'a@b', '--scopes', 'raed'],
    ['secret', 1, 'fewer than 12', 'a@b', '--access', 'read'],
    ['', 1, 'there is no password on standard input', 'a@b', '--access', 'read'],
    ['\n', 1, 'fewer than 12', 'a@b', '--access', 'read'],
    ['secret'.repeat(10_000), 1, 'too long', 'a@b', '--access', 'read'],
  ] as const) {
    const { code, out, err } = await runWith(
      stdin,
      {},
      'users',
      'create',
      ...argv,
      '--data',
      join(folder, 'data'),
    )
    assert.deepEqual([code, out], [exitCode, ''], words)
    assert.ok(err.includes(words) && !err.includes('secret'), err)
  }
  assert.deepEqual(readdirSync(folder), [])
})

test('what is typed is asked for twice, can be mended, and is not to be seen', async (t) => {
  const data = join(temporaryFolder(t), 'data')
  const typed = async (...keys: readonly string[]) => {
    const modes: boolean[] = []
    const stdin = Object.assign(Readable.from(keys.map((key) => Buffer.from(key))), {
      isTTY: true,
      setRawMode: (isRaw: boolean) => modes.push(isRaw),
    })
    const argv = ['users', 'create', `${keys.length}@b`, '--access', 'read', '--data', data]
    const io = memoryIo('', { stdin, columns: 200 })
    const code = await runCli(COMMANDS, argv, io)
    assert.equal(modes.at(-1), false)
    assert.ok(!(io.out + io.err).includes('phrase'))
    return { code, err: io.err }
  }
  const twice = await typed('a phrase of some', ' worsd', '\u007f\b', 'ds\r', PASSWORD, '\r')
  assert.equal(twice.code, 0, twice.err)
  assert.match(twice.err, /^Password: \nAgain: \nusr_/)
  const pasted = await typed(`${PASSWORD}\r${PASSWORD}\r`)
  assert.equal(pasted.code, 0, pasted.err)
  const other = await typed(PASSWORD, '\r', 'a phrase of other words', '\r', '')
  assert.match(other.err, /the two are not the same/)
  for (const keys of [
    ['abc', '\u0003'],
    ['\u0004', '', ''],
  ]) {
    const { code, err } = await typed(...keys)
    assert.equal(code, 1, err)
  }
})

test('on a real terminal a password is asked for twice and not shown', {
  skip: skipped('script'),
}, async (t) => {
  const data = join(temporaryFolder(t), 'data')
  const command = `${process.execPath} ${GATEHOUSE} users create a@b --access read --data ${data}`
  const child = spawn('script', ['-qec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] })
  let shown = ''
  let typed = 0
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    shown += chunk
    const prompts = shown.split(': ').length - 1
    if (prompts <= typed || typed === 2) return
    typed++
    child.stdin.write(`${PASSWORD}\r`)
  })
  await once(child, 'close')
  assert.match(shown, /Password: \s+Again: \s+usr_\S+\s+usr_\S+: a@b: read, detect/)
  assert.ok(!shown.includes('phrase'), shown)
})

async function runWith(stdin: string, env: Record<string, string>, ...argv: readonly string[]) {
  const io = memoryIo(stdin, { env, columns: 200 })
  const code = await runCli(COMMANDS, argv, io)
  return { code, out: io.out, err: io.err }
}

const PASSWORD = 'a phrase of some words'
