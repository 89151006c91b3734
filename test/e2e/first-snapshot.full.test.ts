import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type Test, test } from 'tap'
import { freshUrl } from '../store/databases.ts'
import { testCa, testLeaf } from '../proxy/test-certificates.ts'
import { folderFor, freshBusName, startNats } from './engines.ts'
import { freePort } from './ports.ts'
import {
  asked,
  echoApp,
  eventually,
  OF_A_LOST_DATABASE,
  requested,
  sharedPlace,
  startFleetProxy,
  startManager,
  statusOf,
} from './fleet.ts'
import { endWith, GATEHOUSE, plainEnvironment, skipped } from './programs.ts'

const skip = skipped('nats-server')

const CLOSED = { rules: [{ name: 'closed', when: { path: '/closed' }, action: 'block' }] }
const SHUT = { rules: [{ name: 'shut', when: { path: '/shut' }, action: 'block' }] }

test('a new proxy without NATS does not serve what the policy of its fleet blocks', { skip }, async (t) => {
  const nats = await startNats(t)
  const place = { nats: nats.url, postgres: await freshUrl('postgres', t), bus: freshBusName() }
  const app = await echoApp(t)
  const manager = await startManager(t, { ...place, expects: OF_A_LOST_DATABASE })
  await asked(manager, 'PUT', '/v1/policy', CLOSED, { 'if-match': '*' })
  await nats.kill()
  const proxy = await startWaiting(t, app.url, {
    GATEHOUSE_BUS_URL: place.nats,
    GATEHOUSE_BUS_NAME: place.bus,
  })
  await eventually(async () => (await proxy.ready()).reasons[0]?.code === 'first_snapshot')
  const { status, reasons } = await proxy.ready()
  assert.equal(status, 503)
  assert.match(reasons[0]!.detail, /NATS is unreachable at nats:\/\/127\.0\.0\.1:\d+; check bus\.url/)
  assert.equal((await fetch(`${proxy.manage}/healthz`)).status, 200, 'it is not restarted for it')
  assert.match(
    await (await fetch(`${proxy.manage}/metrics`)).text(),
    /gatehouse_snapshot_source\{source="none"\} 1/,
  )
  assert.equal(await refusal(proxy.port), 'ECONNREFUSED')
  await eventually(async () =>
    /the ports for clients stay closed until there is a Snapshot/.test(proxy.said()),
  )
  await nats.start()
  await eventually(async () => (await proxy.ready()).status === 200)
  await eventually(async () => (await statusOf(proxy, '/closed')) === 403)
  assert.equal((await requested(proxy, '/')).status, 200)
  await proxy.stop()
})

test('a proxy of a fleet in which nothing was published waits, says so, and ends when it is told to', {
  skip,
}, async (t) => {
  const place = await sharedPlace(t)
  const app = await echoApp(t)
  const proxy = await startWaiting(t, app.url, {
    GATEHOUSE_BUS_URL: place.nats,
    GATEHOUSE_BUS_NAME: place.bus,
  })
  await eventually(async () =>
    /no manager has published one on this bus/.test((await proxy.ready()).reasons[0]!.detail),
  )
  await proxy.stop()
})

test('a proxy with a bootstrap file enforces the policy of its fleet before it has ever reached NATS', {
  skip,
}, async (t) => {
  const place = await sharedPlace(t)
  const app = await echoApp(t)
  const manager = await startManager(t, place)
  await asked(manager, 'PUT', '/v1/policy', CLOSED, { 'if-match': '*' })
  const settings = {
    ...{ GATEHOUSE_BUS_URL: place.nats, GATEHOUSE_BUS_NAME: place.bus },
    GATEHOUSE_STORE_URL: place.postgres,
  }
  const folder = folderFor(t, 'export')
  const file = join(folder, 'fleet.snapshot')
  await eventually(async () => {
    await command(folder, ['snapshot', 'export', '--output', file], settings)
    return JSON.parse(await command(folder, ['snapshot', 'show', file, '--json'])).policy.rules.length === 1
  })
  const nowhere = { nats: 'nats://127.0.0.1:9', bus: place.bus }
  const data = folderFor(t, 'proxy')
  const variables = { GATEHOUSE_BUS_BOOTSTRAP_FILE: file }
  const first = await startFleetProxy(t, nowhere, app.url, data, variables)
  assert.equal(await statusOf(first, '/closed'), 403)
  assert.equal((await requested(first, '/')).status, 200)
  await first.stop()
  // What NATS brings is newer, and stays so.
  await asked(manager, 'PUT', '/v1/policy', SHUT, { 'if-match': '*' })
  const second = await startFleetProxy(t, place, app.url, data, variables)
  await eventually(async () => (await statusOf(second, '/shut')) === 403)
  await second.stop()
  const third = await startFleetProxy(t, nowhere, app.url, data, variables)
  assert.deepEqual([await statusOf(third, '/shut'), await statusOf(third, '/closed')], [403, 200])
  assert.match(third.said(), /bus\.bootstrap_file is ignored: a newer Snapshot is on disk/)
  await third.stop()
  // The same policy from the database, with a number below those of the fleet.
  const stored = join(folder, 'stored.snapshot')
  await command(folder, ['snapshot', 'export', '--from', 'store', '--output', stored], settings)
  const shown = JSON.parse(await command(folder, ['snapshot', 'show', stored, '--json']))
  assert.deepEqual([shown.number, shown.policy], [1, SHUT])
  const copied = join(folder, 'copied.snapshot')
  await command(folder, ['snapshot', 'export', '--from', 'disk', '--data', data, '--output', copied])
  assert.deepEqual(JSON.parse(await command(folder, ['snapshot', 'show', copied, '--json'])).policy, SHUT)
})

/** With ports that are known before it is ready. */
async function startWaiting(t: Test, upstream: string, variables: NodeJS.ProcessEnv) {
  const folder = folderFor(t, 'waiting')
  const [port, managePort] = [await freePort(), await freePort()]
  const [cert, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')]
  writeFileSync(cert, leaf.certificate)
  writeFileSync(key, leaf.key, { mode: 0o600 })
  const listen = ['--listen', `127.0.0.1:${port}`, '--manage', `127.0.0.1:${managePort}`]
  const argv = ['proxy', '--upstream', upstream, ...listen, '--cert', cert, '--key', key]
  const child = spawn(process.execPath, [GATEHOUSE, ...argv], {
    cwd: folder,
    env: plainEnvironment(folder, variables),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  endWith(t, child)
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    said += chunk
  })
  const manage = `http://127.0.0.1:${managePort}`
  const place = {
    pid: child.pid!,
    port,
    url: `https://localhost:${port}`,
    manage,
    ca: ca.certificate,
    caFile: '',
  }
  return {
    ...place,
    said: () => said,
    async ready() {
      const response = await fetch(`${manage}/readyz`)
      const { reasons } = (await response.json()) as { reasons: readonly { code: string; detail: string }[] }
      return { status: response.status, reasons }
    },
    async stop() {
      child.kill('SIGTERM')
      assert.deepEqual(await once(child, 'exit'), [0, null])
    },
    kill: async () => void child.kill('SIGKILL'),
  }
}

/** Why there is no connection. */
async function refusal(port: number): Promise<string | undefined> {
  const socket = connect({ host: '127.0.0.1', port })
  const [error] = await once(socket, 'error')
  return (error as NodeJS.ErrnoException).code
}

async function command(
  folder: string,
  argv: readonly string[],
  variables: NodeJS.ProcessEnv = {},
): Promise<string> {
  const child = spawn(process.execPath, [GATEHOUSE, ...argv], {
    cwd: folder,
    env: plainEnvironment(folder, variables),
  })
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  assert.equal(child.exitCode, 0, err)
  return out
}

const ca = await testCa()
const leaf = await testLeaf(ca, ['localhost'])
