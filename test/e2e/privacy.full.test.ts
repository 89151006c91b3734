import assert from 'node:assert/strict'
import { once } from 'node:events'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type Test, test } from 'tap'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import { freshUrl } from '../store/databases.ts'
import { allText } from '../store/all-text.ts'
import { until } from '../until.ts'
import { startApp } from './app.ts'
import { type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { temporaryFolder } from './programs.ts'

const ADMIN = 'an administrator key of this test'
/** Each byte of it is rare. */
const CLIENT = '203.209.173.221'
const CLIENT_BYTES = Buffer.from(CLIENT.split('.').map(Number))

for (const kind of ['sqlite', 'postgres'] as const)
  for (const addresses of ['network', 'keyed_hash'] as const)
    test(`${kind}, ${addresses}: no file and no table has the address, and a search by it finds the request`, async (t) => {
      const { gate, url, folder } = await start(t, kind, addresses)
      assert.equal(await visit(gate, '/reset/k3y9?token=hidden'), 200)
      const { requests } = await untilFound(gate)
      assert.equal(requests.length, 1)
      const found = requests[0]!
      assert.match(found.address, addresses === 'network' ? /^203\.209\.173\.0\/24$/ : /^hash:/)
      assert.deepEqual([found.path, found.user_agent], ['/reset/[redacted]', 'reader/3'])
      assert.deepEqual((await listed(gate, '198.51.100.1')).requests, [])
      await gate.stop()
      const files = globSync('**/*', { cwd: folder, withFileTypes: true }).filter((each) => each.isFile())
      assert.ok(files.length > 1)
      const stored = [
        ...files.map(({ parentPath, name }) => readFileSync(join(parentPath, name))),
        Buffer.from(await allText(url)),
      ]
      assert.ok(stored.at(-1)!.includes('reader/3'))
      for (const bytes of stored)
        for (const form of [CLIENT, CLIENT_BYTES, CLIENT_BYTES.toString('hex'), 'k3y9', 'hidden', 'ann@'])
          assert.equal(bytes.includes(form), false, String(form))
    })

async function start(t: Test, kind: DatabaseKind, addresses: string) {
  const app = await startApp(t, { '/': (_, response) => void response.end('ok') })
  const folder = temporaryFolder(t)
  const keys = join(temporaryFolder(t), 'privacy.keys')
  writeFileSync(keys, `${'a'.repeat(40)}\n`, { mode: 0o600 })
  const url = kind === 'sqlite' ? `sqlite:${join(folder, 'gatehouse.db')}` : await freshUrl(kind, t)
  const gate = await startGatehouse(t, {
    command: 'up',
    upstream: app.url,
    settings: [
      'trusted_proxies: [127.0.0.0/8]',
      'access_log: json',
      `access_log_file: ${join(folder, 'access.log')}`,
    ],
    variables: {
      GATEHOUSE_STORE_URL: url,
      GATEHOUSE_DATA_DIR: folder,
      GATEHOUSE_ADMIN_KEY: ADMIN,
      GATEHOUSE_SIGHTINGS_FILE: join(folder, 'sightings.jsonl'),
      GATEHOUSE_PRIVACY_ADDRESSES: addresses,
      GATEHOUSE_PRIVACY_USER_AGENTS: 'product',
      GATEHOUSE_PRIVACY_KEYS_FILE: keys,
    },
  })
  return { gate, url, folder }
}

async function visit({ url, ca }: RunningGatehouse, path: string): Promise<number> {
  const headers = { 'x-forwarded-for': CLIENT, 'user-agent': 'reader/3.14 (ann@example.com)' }
  const [response] = (await once(request(`${url}${path}`, { ca, headers }).end(), 'response')) as [
    IncomingMessage,
  ]
  await text(response)
  return response.statusCode!
}

async function listed(gate: RunningGatehouse, address: string) {
  const response = await fetch(`${gate.manage}/v1/requests?address=${address}`, {
    headers: { authorization: `Bearer ${ADMIN}` },
  })
  assert.equal(response.status, 200)
  return response.json() as Promise<{ requests: { address: string; path: string; user_agent: string }[] }>
}

async function untilFound(gate: RunningGatehouse) {
  let found = await listed(gate, CLIENT)
  await until(async () => {
    found = await listed(gate, CLIENT)
    return found.requests.length > 0
  })
  return found
}
