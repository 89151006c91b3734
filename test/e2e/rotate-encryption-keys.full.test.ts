import assert from 'node:assert/strict'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { memoryIo } from '../commands/memory-io.ts'
import { startApp } from './app.ts'
import { startGatehouse } from './gatehouse.ts'
import { MountedSecret } from './mounted-secret.ts'
import { temporaryFolder } from './programs.ts'
import { until } from '../until.ts'

const ADMIN_KEY = 'an administrator of tests and of nothing else'
const [OLD, NEW] = ['the old key of this database', 'the new key of this database']

test('encryption keys are replaced step by step while the gateway runs, and nothing is lost', async (t) => {
  const app = await startApp(t)
  const data = temporaryFolder(t)
  const secret = new MountedSecret(join(data, 'secret'), { keys: `${OLD}\n` })
  const gate = await startGatehouse(t, {
    ...{ command: 'up', upstream: app.url, argv: ['--workers', '1', '--data', data] },
    variables: {
      GATEHOUSE_ADMIN_KEY: ADMIN_KEY,
      GATEHOUSE_STORE_ENCRYPTION_KEYS_FILE: secret.file('keys'),
    },
    expects: /not reloaded|cannot be read: add it there/,
  })
  const metric = async (name: string) => {
    const text = await (await fetch(`${gate.manage}/metrics`)).text()
    return Number(new RegExp(`^gatehouse_${name}\\{what="encryption-keys"\\} (\\d+)$`, 'm').exec(text)?.[1])
  }
  const rekey = async () => {
    const env = { GATEHOUSE_STORE_ENCRYPTION_KEYS_FILE: secret.file('keys') }
    const io = memoryIo('', { env, columns: 200 })
    const code = await runCli(COMMANDS, ['rekey', '--data', data, '--json'], io)
    return { code, ...(JSON.parse(io.out || '{}') as { readonly key_id?: string }), err: io.err }
  }
  const client = await (
    await fetch(`${gate.manage}/v1/clients`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'test', grant_types: ['client_credentials'], scopes: ['read'] }),
    })
  ).json()
  const token = async () => {
    const { client_id: id, client_secret: word } = client as Record<string, string>
    const response = await fetch(`${gate.manage}/oauth/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${id}:${word}`).toString('base64')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials' }),
    })
    return response.status
  }
  assert.equal(await token(), 200)
  assert.equal(await metric('reload_current'), 1)

  secret.swap({ keys: `${OLD}\nshort\n` })
  await until(async () => (await metric('reload_current')) === 0)
  assert.match(gate.said(), /fewer than 16 characters, which could be guessed/)
  assert.equal(await token(), 200, 'the keys before stay in use')

  const before = await metric('loaded_version')
  secret.swap({ keys: `${NEW}\n${OLD}\n` })
  await until(async () => (await metric('loaded_version')) > before)
  assert.equal(await token(), 200)
  const done = await rekey()
  assert.equal(done.code, 0, done.err)

  secret.swap({ keys: `${NEW}\n` })
  await until(async () => (await metric('loaded_version')) > before + 1)
  assert.equal(await metric('reload_current'), 1)
  assert.equal(await token(), 200)
  assert.equal((await rekey()).key_id, done.key_id)
  // A ring without the key that was last written with is said at once.
  secret.swap({ keys: 'a key that nothing was written with\n' })
  while (!gate.said().includes('which is not in store.encryption_keys')) await wait(20)
  secret.swap({ keys: `${NEW}\n` })
  await until(async () => (await metric('loaded_version')) > before + 3)
  for (const word of [OLD, NEW]) assert.ok(!gate.said().includes(word))
  await gate.stop()
  const next = await startGatehouse(t, {
    ...{ command: 'up', upstream: app.url, argv: ['--workers', '1', '--data', data] },
    variables: { GATEHOUSE_STORE_ENCRYPTION_KEYS_FILE: secret.file('keys') },
  })
  assert.ok(!next.said().includes('which is not in store.encryption_keys'))
})
