import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { AckPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { test } from 'tap'
import { SinkMetrics } from '../../src/manage/events/sinks/sink-metrics.ts'
import { RequestSinks, type RequestSinkSettings } from '../../src/manage/export/request-sinks.ts'
import type { Store } from '../../src/store/store.ts'
import { SILENT } from '../contract/seen.ts'
import { startNats } from '../e2e/engines.ts'
import { skipped } from '../e2e/programs.ts'
import { freshUrl, KINDS, openAt, type Owner } from '../store/databases.ts'
import { until } from '../until.ts'
import { NO_SINKS } from './request-sink.ts'

const skip = skipped('nats-server')

for (const kind of KINDS)
  test(`${kind}: killed again and again, with NATS killed too, a process leaves no request out`, {
    skip,
  }, async (t) => {
    const url = await freshUrl(kind, t)
    const server = await startNats(t)
    const client = await connect({ servers: server.url, maxReconnectAttempts: -1, reconnectTimeWait: 50 })
    t.teardown(() => client.close())
    const manager = await jetstreamManager(client)
    await manager.streams.add({ name: 'requests', subjects: ['requests.>'] })
    const settings = {
      nats: { urls: [server.url], subject: 'requests.{app}', isStream: true, login: NO_LOGIN },
    }
    // The sink begins with the requests after its first start.
    const messages = async () => (await manager.streams.info('requests')).state.messages
    await drain(t, await openAt(t, url), { settings, messages })
    const acknowledged: string[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const before = await messages()
      const argv = [PROCESS, url, JSON.stringify(settings), String(round * 1_000_000)]
      const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] })
      let text = ''
      child.stdout.on('data', (piece) => {
        text += piece
      })
      await until(async () => (await messages()) > before + 300, DRILL_MS)
      if (round % 2 === 1) {
        await server.stop()
        await server.start()
        const again = await untilAnswered(messages)
        await until(async () => (await messages()) > again, DRILL_MS)
      }
      await wait(Math.random() * 300) // at any point of its work
      child.kill('SIGKILL')
      await once(child, 'close')
      acknowledged.push(...text.slice(0, text.lastIndexOf('\n')).split(/\s/))
    }
    const store = await openAt(t, url)
    await drain(t, store, { settings, messages })
    const ids: string[] = []
    await manager.consumers.add('requests', { durable_name: 'all', ack_policy: AckPolicy.None })
    const consumer = await jetstream(client).consumers.get('requests', 'all')
    for (const end = await messages(); ids.length < end; )
      for await (const message of await consumer.fetch({ max_messages: 1_000, expires: 1_000 }))
        ids.push(message.json<{ id: string }>().id)
    // The stream drops repeats for two minutes.
    assert.deepEqual(ids.toSorted(), (await storedIds(store)).toSorted())
    assert.ok(acknowledged.length > ROUNDS * 300, `${acknowledged.length} acknowledged`)
    const sent = new Set(ids)
    assert.deepEqual(
      acknowledged.filter((id) => !sent.has(id)),
      [],
    )
  })

async function untilAnswered(messages: () => Promise<number>): Promise<number> {
  let found: number | null = null
  await until(async () => {
    found = await messages().catch(() => null)
    return found !== null
  }, DRILL_MS)
  return found ?? 0
}

/** Sends what waits. */
async function drain(t: Owner, store: Store, { settings, messages }: Drained): Promise<void> {
  const metrics = new SinkMetrics(['nats'])
  const pace = { pollMs: 20, retryBaseMs: 20 }
  const sinks = new RequestSinks({ ...NO_SINKS, ...settings }, metrics, '', pace)
  // A turn of the killed process may still last.
  await sinks.start({ store, log: SILENT, nowMs: () => Date.now() + 60_000 })
  t.teardown(() => sinks.close())
  await until(async () => (await messages()) >= (await storedIds(store)).length, DRILL_MS)
  await sinks.close()
}

interface Drained {
  readonly settings: Pick<RequestSinkSettings, 'nats'>
  /** How many the stream has. */
  messages(): Promise<number>
}

async function storedIds(store: Store): Promise<readonly string[]> {
  return (await store.sightings.newest(null, 1_000_000)).map(({ document }) => document.id)
}

const ROUNDS = 4
/** A process starts in half a second, but not on a machine with much else to do. */
const DRILL_MS = 300_000
const PROCESS = new URL('./request-sink-process.ts', import.meta.url).pathname
const NO_LOGIN = {
  ...{ credentialsFile: null, user: null, password: null, token: null },
  tls: { caFile: null, certificateFile: null, keyFile: null },
}
