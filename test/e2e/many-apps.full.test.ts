import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { Agent, get } from 'node:https'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { echoApp, asked, eventually, sharedPlace, startFleetProxy, startManager } from './fleet.ts'
import { folderFor } from './engines.ts'
import type { RunningGatehouse } from './gatehouse.ts'
import { skipped } from './programs.ts'
import { until } from '../until.ts'

const APPS = 200
const RULES = 200
const TEAMS = 40
const skip = skipped('nats-server')

test('200 apps of 40 teams in a fleet: each has its own rules, at its own proxies', { skip }, async (t) => {
  const place = await sharedPlace(t)
  const app = await echoApp(t)
  const managers = [await startManager(t, place), await startManager(t, place)]
  const start = (variables: NodeJS.ProcessEnv = {}) =>
    startFleetProxy(t, place, app.url, folderFor(t, 'proxy'), variables)
  const shared = [await start(), await start(), await start()]
  const line = await recorded(t, place.nats)
  const data = folderFor(t, 'sidecar')
  const sidecar = await startFleetProxy(t, { ...place, nats: line.url }, app.url, data, {
    GATEHOUSE_PROXY_APP: 'app-7',
  })
  const proxies = [...shared, sidecar]
  const before = proxies.map(memoryOf)

  for (let each = 0; each < APPS; each++) {
    const manager = managers[each % 2]!
    const id = `app-${each}`
    await asked(manager, 'POST', '/v1/apps', { id, team: `team-${each % TEAMS}`, hosts: [`${id}.example`] })
    await asked(manager, 'PUT', `/v1/apps/${id}/policy`, policyOf(id), { 'if-match': '*' })
  }
  const isBlocked = async (proxy: RunningGatehouse, id: string, path: string) =>
    (await statusFor(proxy, `${id}.example`, path)) === 403
  for (const proxy of shared)
    for (const id of ['app-0', 'app-7', 'app-199'])
      await eventually(() => isBlocked(proxy, id, `/${id}/${RULES - 1}`))
  await eventually(() => isBlocked(sidecar, 'app-7', `/app-7/${RULES - 1}`))
  t.comment(
    `memory: ${proxies.map((proxy, at) => (memoryOf(proxy) / before[at]!).toFixed(2)).join(', ')} of before`,
  )

  // A proxy of one app has the rules of that app, whatever host it is asked for.
  assert.ok(await isBlocked(sidecar, 'app-8', '/app-7/0'))
  assert.ok(!(await isBlocked(sidecar, 'app-8', '/app-8/0')))
  // Every app has its own rules, and no other's.
  for (let each = 0; each < APPS; each++) {
    const id = `app-${each}`
    const other = `app-${(each + 1) % APPS}`
    const proxy = shared[each % shared.length]!
    assert.ok(await isBlocked(proxy, id, `/${id}/${each}`), id)
    assert.ok(!(await isBlocked(proxy, id, `/${other}/${each}`)), `${id} with a path of ${other}`)
  }

  // It receives and keeps nothing of other apps, and of their changes only that there was one.
  const others = /app-(?!7\b)\d/
  await until(() => existsSync(join(data, 'fleet', 'app', 'app.part')))
  const files = readdirSync(data, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
  assert.ok(files.some((file) => file.endsWith('newest.snapshot')))
  for (const file of files) assert.doesNotMatch(readFileSync(file, 'latin1'), others, file)
  const before10 = line.received.length
  for (let each = 8; each < 18; each++)
    await asked(managers[0]!, 'PUT', `/v1/apps/app-${each}/policy`, policyOf('new'), {
      'if-match': '*',
    })
  for (const proxy of shared) await eventually(() => isBlocked(proxy, 'app-17', '/new/0'))
  await wait(500)
  const heard = line.received.slice(before10).join('')
  t.comment(
    `of 10 changes of other apps it received ${heard.length} bytes, of all before ${before10} messages`,
  )
  assert.ok(heard.length < 10 * 1_024, `${heard.length} bytes`)
  assert.doesNotMatch(line.received.join(''), others)

  // A change of one app is in force at all of its proxies, and no other app's policy has changed.
  const changed = { rules: [{ name: 'closed', when: { path: '/**' }, action: 'block' }] }
  const startedMs = performance.now()
  await asked(managers[1]!, 'PUT', '/v1/apps/app-7/policy', changed, { 'if-match': '*' })
  const took = await Promise.all(
    proxies.map(async (proxy) => {
      await eventually(() => isBlocked(proxy, 'app-7', '/'))
      return performance.now() - startedMs
    }),
  )
  t.comment(`in force after ${took.map((ms) => ms.toFixed(0)).join(', ')} ms`)
  for (let each = 0; each < APPS; each++) {
    const id = `app-${each}`
    const { version } = await asked(managers[0]!, 'GET', `/v1/apps/${id}/policy`)
    assert.equal(version, each >= 7 && each < 18 ? 2 : 1, id)
    if (id !== 'app-7') assert.ok(!(await isBlocked(shared[0]!, id, '/')), id)
  }

  // A team sees and changes its own apps, and nothing of the others.
  const ids = Array.from({ length: APPS / TEAMS }, (_, each) => `app-${7 + each * TEAMS}`)
  const { key } = await asked(managers[0]!, 'POST', '/v1/keys', {
    name: 'team 7',
    scopes: ['admin'],
    apps: ids,
  })
  const asTeam = { authorization: `Bearer ${key}` }
  const seen = await asked(managers[1]!, 'GET', '/v1/apps?limit=100', undefined, asTeam)
  assert.deepEqual(seen.apps.map(({ id }: { id: string }) => id).sort(), ids.toSorted())
  await asked(managers[1]!, 'PUT', '/v1/apps/app-47/policy', changed, { ...asTeam, 'if-match': '*' })
  await assert.rejects(
    asked(managers[1]!, 'PUT', '/v1/apps/app-48/policy', changed, { ...asTeam, 'if-match': '*' }),
    /: 404 /,
  )
  for (const proxy of shared) await eventually(() => isBlocked(proxy, 'app-47', '/'))
  assert.ok(!(await isBlocked(shared[0]!, 'app-48', '/')))
})

/** A way to NATS that keeps what NATS sends. */
async function recorded(t: Test, nats: string) {
  const { hostname, port } = new URL(nats)
  const received: string[] = []
  const server = createServer((socket) => {
    const upstream = connect(Number(port), hostname)
    upstream.on('data', (bytes: Buffer) => void received.push(bytes.toString('latin1')))
    socket.pipe(upstream).pipe(socket)
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const)
      one.on('error', () => undefined).on('close', () => other.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`, received }
}

function policyOf(id: string): object {
  const rules = Array.from({ length: RULES }, (_, each) => ({
    name: `rule-${each}`,
    when: { path: `/${id}/${each}` },
    action: 'block',
  }))
  return { rules }
}

/** Bytes of memory in use. */
function memoryOf({ pid }: RunningGatehouse): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
}

const agents = new Map<number, Agent>()

function statusFor({ port, ca }: RunningGatehouse, host: string, path: string): Promise<number> {
  const agent = agents.get(port) ?? new Agent({ keepAlive: true, maxSockets: 2, ca })
  agents.set(port, agent)
  return new Promise((resolve, reject) => {
    get({ host: 'localhost', servername: 'localhost', port, path, agent, headers: { host } }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode!))
    }).on('error', reject)
  })
}
