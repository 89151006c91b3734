import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { Relay } from '../store/relay.ts'
import { folderFor } from './engines.ts'
import { freePort } from './ports.ts'
import { ADMIN_KEY, eventually, OF_A_LOST_DATABASE, sharedPlace, startManager, statusOf } from './fleet.ts'
import { startGatehouse } from './gatehouse.ts'
import { endWith, GATEHOUSE, plainEnvironment } from './programs.ts'
import { withoutNats } from '../services/services.ts'

const skip = withoutNats()

test('a new gateway is not ready before its catalogue lists every agent', async (t) => {
  const folder = folderFor(t, 'up')
  const [port, managePort] = [await freePort(), await freePort()]
  const listen = ['--listen', `127.0.0.1:${port}`, '--manage', `127.0.0.1:${managePort}`]
  const argv = ['up', '--upstream', 'http://127.0.0.1:9', '--workers', '1', ...listen]
  const child = spawn(process.execPath, [GATEHOUSE, ...argv], {
    cwd: folder,
    env: plainEnvironment(folder, { GATEHOUSE_ADMIN_KEY: ADMIN_KEY }),
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  endWith(t, child)
  await isCompleteOnceReady(`http://127.0.0.1:${managePort}`)
  child.kill('SIGTERM')
  assert.deepEqual(await once(child, 'exit'), [0, null])
})

test('a new manager, and one beside it, are not ready before the catalogue lists every agent', {
  skip,
}, async (t) => {
  const place = await sharedPlace(t)
  const ports = [await freePort(), await freePort()]
  for (const port of ports) {
    const folder = folderFor(t, 'manager')
    const child = spawn(process.execPath, [GATEHOUSE, 'manage', '--manage', `127.0.0.1:${port}`], {
      cwd: folder,
      env: plainEnvironment(folder, {
        GATEHOUSE_BUS_URL: place.nats,
        GATEHOUSE_BUS_NAME: place.bus,
        GATEHOUSE_STORE_URL: place.postgres,
        GATEHOUSE_STORE_ENCRYPTION_KEY: 'a key that managers of a test have',
        GATEHOUSE_ADMIN_KEY: ADMIN_KEY,
      }),
      stdio: ['ignore', 'ignore', 'ignore'],
    })
    endWith(t, child)
  }
  await Promise.all(ports.map((port) => isCompleteOnceReady(`http://127.0.0.1:${port}`)))
})

test('a manager without its database is not ready, unless it may be', { skip }, async (t) => {
  const place = { ...(await sharedPlace(t)), expects: OF_A_LOST_DATABASE }
  const relay = await Relay.before(place.postgres)
  t.teardown(() => relay.stop())
  const strict = await startManager(t, { ...place, postgres: relay.url })
  const lenient = await startManager(t, { ...place, postgres: relay.url }, READY_WITHOUT_STORE)
  await eventually(async () => (await readiness(strict.manage)).status === 200)
  await eventually(async () => (await readiness(lenient.manage)).status === 200)
  // One that breaks for a moment does not show.
  relay.cut()
  for (let time = 0; time < 20; time++) {
    assert.equal((await readiness(strict.manage)).status, 200)
    await wait(100)
  }
  await relay.stop()
  await eventually(async () => (await readiness(strict.manage)).status === 503)
  const { reasons } = await readiness(strict.manage)
  assert.deepEqual(
    reasons.map(({ code }) => code),
    ['database'],
  )
  assert.match(reasons[0]!.detail, /the database is unreachable: check store\.url/)
  assert.match(await metricsOf(strict.manage), /^gatehouse_unready\{reason="database"\} 1$/m)
  assert.equal((await readiness(lenient.manage)).status, 200)
  assert.equal((await fetch(`${strict.manage}/livez`)).status, 200)
  await relay.start()
  await eventually(async () => (await readiness(strict.manage)).status === 200)
})

test('a manager that starts without its database says so, and is ready when it is there', {
  skip,
}, async (t) => {
  const place = { ...(await sharedPlace(t)), expects: OF_A_LOST_DATABASE }
  const relay = await Relay.before(place.postgres)
  t.teardown(() => relay.stop())
  await relay.stop()
  const manager = await startManager(t, { ...place, postgres: relay.url })
  assert.ok((manager.ready['unready'] as string[]).includes('database'))
  assert.equal((await readiness(manager.manage)).status, 503)
  await relay.start()
  await isCompleteOnceReady(manager.manage)
})

for (const ready of ['always', 'upstream'] as const)
  test(`the failures of the only app show, and each change is logged once: proxy.ready ${ready}`, async (t) => {
    const port = await freePort()
    const gate = await startGatehouse(t, {
      command: 'up',
      argv: ['--workers', '2', '--upstream', `http://127.0.0.1:${port}`],
      settings: [`ready: ${ready}`],
    })
    const healthy = async () =>
      /^gatehouse_upstream_targets_healthy\{upstream="default"\} (\d)$/m.exec(
        await metricsOf(gate.manage),
      )?.[1]
    const logged = (what: string) => gate.said().split(`an upstream target is ${what}`).length - 1
    await eventually(async () => (await healthy()) === '1')
    // Both workers find it out by their own requests.
    for (let time = 0; time < 30; time++) assert.equal(await statusOf(gate, '/'), 502)
    await eventually(async () => (await healthy()) === '0')
    await eventually(async () => logged('unhealthy') === 1)
    if (ready === 'upstream') {
      await eventually(async () => (await readiness(gate.manage)).status === 503)
      assert.deepEqual((await readiness(gate.manage)).reasons, [
        { code: 'upstream', detail: 'upstream default: no target is healthy' },
      ])
    } else assert.equal((await readiness(gate.manage)).status, 200)
    assert.equal(await statusOf(gate, '/'), 502, 'it is asked all the same')
    const app = createServer((_, response) => response.end('ok'))
    app.listen(port, '127.0.0.1')
    t.teardown(() => {
      app.close()
      app.closeAllConnections()
    })
    // No request is sent: the proxy finds out by itself.
    await eventually(async () => (await healthy()) === '1')
    await eventually(async () => logged('healthy again') === 1)
    await eventually(async () => (await readiness(gate.manage)).status === 200)
    assert.equal(await statusOf(gate, '/'), 200)
    assert.equal(logged('unhealthy'), 1)
  })

async function isCompleteOnceReady(manage: string): Promise<void> {
  let wasUnready = false
  for (;;) {
    const status = await readiness(manage).then(
      (answer) => answer.status,
      () => null, // it does not listen yet
    )
    if (status === 503) wasUnready = true
    if (status === 200) break
    await wait(5)
  }
  assert.ok(wasUnready)
  const atOnce = await agentsAt(manage)
  assert.ok(atOnce > 1_000, String(atOnce))
  await wait(1_500) // no agent is added later
  assert.equal(await agentsAt(manage), atOnce)
}

async function agentsAt(manage: string): Promise<number> {
  const answer = await fetch(`${manage}/v1/agents?limit=1&page=1`, {
    headers: { authorization: `Bearer ${ADMIN_KEY}` },
  })
  assert.equal(answer.status, 200)
  return ((await answer.json()) as { total: number }).total
}

async function readiness(manage: string) {
  const answer = await fetch(`${manage}/health/ready`)
  const { reasons } = (await answer.json()) as { reasons: readonly { code: string; detail: string }[] }
  return { status: answer.status, reasons }
}

async function metricsOf(manage: string): Promise<string> {
  return (await fetch(`${manage}/metrics`)).text()
}

const READY_WITHOUT_STORE = { GATEHOUSE_MANAGE_READY_WITHOUT_STORE: 'true' }
