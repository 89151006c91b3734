import assert from 'node:assert/strict'
import { test } from 'tap'
import { upstreamSettings } from '../proxy/test-worker.ts'
import { until } from '../until.ts'
import { PART_BYTES, PARTS, SlowApp, SlowClient, STREAMS, WINDOW_BYTES } from './http2-slow-streams.ts'
import { startVictim } from './victim.ts'

const CONNECTIONS = 80
const COUNT = CONNECTIONS * STREAMS
/** The memory of one slow stream, with its app connection. */
const STREAM_BYTES_MAX = 32_768

test(`HTTP/2: ${COUNT} slow streams at a time all get their answers`, { timeout: 600_000 }, async (t) => {
  const app = await SlowApp.start(t)
  const upstream = upstreamSettings(app.url, {
    ...{ connectionsMax: COUNT, connectTimeoutMs: PATIENCE_MS, headTimeoutMs: PATIENCE_MS },
  })
  const victim = await startVictim(t, { upstream: app.url, settings: { upstreams: [upstream] } })
  const before = await victim.read()
  const clients = await Promise.all(
    Array.from({ length: CONNECTIONS }, (_, index) => SlowClient.dial(t, victim, index)),
  )
  for (const client of clients) client.ask()
  // No answer begins before the last request has come.
  await until(() => app.waiting === COUNT, PATIENCE_MS)
  const open = await victim.read()
  assert.equal(open.metrics['streams_open'], COUNT)
  let most = open.heldBytes
  for (let part = 1; part <= PARTS; part++) {
    app.sendPart(part)
    for (const isFirstHalf of [true, false]) {
      const bytes = part * PART_BYTES - (isFirstHalf ? WINDOW_BYTES : 0)
      await until(() => clients.every((client) => client.has(bytes)), PATIENCE_MS)
      most = Math.max(most, (await victim.read()).heldBytes)
      if (isFirstHalf || part < PARTS) for (const client of clients) client.openWindows()
    }
  }
  await until(() => clients.every((client) => client.isDone), PATIENCE_MS)
  const wrong = clients.flatMap((client) => client.wrong())
  assert.deepEqual(wrong, [])
  await victim.settles('streams_open', 0)
  const perStream = [open.heldBytes, most].map((bytes) => Math.round((bytes - before.heldBytes) / COUNT))
  t.comment(`${COUNT} right answers; memory per stream: ${perStream[0]} B waiting, ${perStream[1]} B at most`)
  assert.ok(perStream.every((bytes) => bytes < STREAM_BYTES_MAX))
})

const PATIENCE_MS = 120_000
