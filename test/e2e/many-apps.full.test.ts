import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Agent, get } from 'node:https'
import { test } from 'tap'
import { echoApp, asked, eventually, sharedPlace, startFleetProxy, startManager } from './fleet.ts'
import { folderFor } from './engines.ts'
import type { RunningGatehouse } from './gatehouse.ts'
import { skipped } from './programs.ts'

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
  const sidecar = await start({ GATEHOUSE_PROXY_APP: 'app-7' })
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
    assert.equal(version, id === 'app-7' ? 2 : 1, id)
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
