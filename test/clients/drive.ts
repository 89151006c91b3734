import assert from 'node:assert/strict'
import { test } from 'tap'
import { type RunningGatehouse, startGatehouse } from '../e2e/gatehouse.ts'
import { until } from '../until.ts'
import { HELD, PAGE, startClientsApp } from './app.ts'
import { ask } from './ask.ts'
import { CASES, whole } from './cases.ts'
import type { Client } from './clients.ts'

/** A test of one client: it is asked everything that it can do. */
export function drive(client: Client): void {
  test(`${client.name} over HTTP/2`, { skip: client.skip }, async (t) => {
    const app = await startClientsApp(t)
    const gate = await startGatehouse(t, { upstream: app.url, settings: ['http2: own'] })
    const { send } = await client.start(t, gate)
    const { can } = client

    for (const { name, needs, asks, check } of CASES)
      if (needs === undefined || can.includes(needs))
        t.test(name, async () => {
          app.asked.length = 0
          await check({ answers: await send(asks), asked: app.asked, app, can })
        })

    if (can.includes('reset'))
      t.test('all of it on one connection', async () => assert.equal(await handshakes(gate), 1))

    if (can.includes('goaway'))
      t.test('a graceful stop: every request under way has its whole answer', async () => {
        const sent = send(Array.from({ length: HELD }, () => ask('/hold')))
        await until(() => app.held === HELD)
        const stopped = gate.stop()
        await until(() => gate.said().includes('"message":"stopping"'))
        app.release()
        whole(await sent, PAGE)
        await stopped
      })
  })
}

async function handshakes({ manage }: RunningGatehouse): Promise<number> {
  const page = await (await fetch(`${manage}/metrics`)).text()
  const counts = [...page.matchAll(/^\w+_handshakes_total\{.*\} (\d+)$/gm)]
  return counts.reduce((sum, [, count]) => sum + Number(count), 0)
}
