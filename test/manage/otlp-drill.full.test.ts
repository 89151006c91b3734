import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { SinkMetrics } from '../../src/manage/events/sinks/sink-metrics.ts'
import { RequestSinks } from '../../src/manage/export/request-sinks.ts'
import type { Store } from '../../src/store/store.ts'
import { SILENT } from '../contract/seen.ts'
import { freshUrl, KINDS, openAt, type Owner } from '../store/databases.ts'
import { until } from '../until.ts'
import { recordsIn } from './otlp-reader.ts'
import { NO_SINKS } from './request-sink.ts'

for (const kind of KINDS)
  test(`${kind}: killed again and again, a process leaves no request out of a collector`, async (t) => {
    const url = await freshUrl(kind, t)
    const collector = await startCollector(t)
    // The sink begins with the requests after its first start.
    await drain(t, await openAt(t, url), collector)
    const acknowledged: string[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const before = collector.times.size
      const child = start(url, collector.endpoint, round * 1_000_000)
      const closed = once(child, 'close')
      let said = ''
      child.stdout!.on('data', (piece) => {
        said += piece
      })
      await until(() => collector.times.size > before + 300, DRILL_MS)
      // Between the answer and the note of how far it has come, or at any point of its work.
      if (round % 2 === 0) await collector.killsAtMessage(child)
      else {
        await wait(Math.random() * 300)
        child.kill('SIGKILL')
      }
      await closed
      acknowledged.push(...said.slice(0, said.lastIndexOf('\n')).split(/\s/))
    }
    const store = await openAt(t, url)
    await drain(t, store, collector)
    assert.deepEqual([...collector.times.keys()].toSorted(), (await storedIds(store)).toSorted())
    assert.ok(acknowledged.length > ROUNDS * 300, `${acknowledged.length} acknowledged`)
    assert.deepEqual(
      acknowledged.filter((id) => !collector.times.has(id)),
      [],
    )
    // What it had sent when it was killed is sent again, because nothing says that it arrived.
    assert.ok(collector.unmarked.length > 0)
    assert.deepEqual(
      collector.unmarked.filter((id) => collector.times.get(id)! < 2),
      [],
    )
  })

interface Collector {
  readonly endpoint: string
  /** How often each request has arrived. */
  readonly times: ReadonlyMap<string, number>
  /** Requests that have arrived from a process that was killed before it had the answer. */
  readonly unmarked: readonly string[]
  /** Kills the process when its next message has arrived, before the answer. */
  killsAtMessage(child: ChildProcess): Promise<void>
}

async function startCollector(t: Owner): Promise<Collector> {
  const times = new Map<string, number>()
  const unmarked: string[] = []
  let victim: { readonly child: ChildProcess; readonly killed: () => void } | null = null
  const server = createServer(async (asked, answered) => {
    const ids = recordsIn(JSON.parse(await text(asked)) as object).map(({ attributes }) =>
      String(attributes['log.record.uid']),
    )
    for (const id of ids) times.set(id, (times.get(id) ?? 0) + 1)
    if (victim !== null) {
      unmarked.push(...ids)
      const { child, killed } = victim
      victim = null
      child.kill('SIGKILL')
      await once(child, 'exit')
      killed()
    }
    answered.end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const killsAtMessage = (child: ChildProcess) =>
    new Promise<void>((killed) => {
      victim = { child, killed }
    })
  return { endpoint: `http://127.0.0.1:${port}/v1/logs`, times, unmarked, killsAtMessage }
}

function start(url: string, endpoint: string, from: number): ChildProcess {
  const settings = { otlp: { endpoint, service: 'gate', ca: null } }
  return spawn(process.execPath, [PROCESS, url, JSON.stringify(settings), String(from)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

/** Sends what waits. */
async function drain(t: Owner, store: Store, { endpoint, times }: Collector): Promise<void> {
  const metrics = new SinkMetrics(['otlp'])
  const otlp = { endpoint, headers: async () => ({}), service: 'gate', ca: null }
  const sinks = new RequestSinks({ ...NO_SINKS, otlp }, metrics, '', { pollMs: 20, retryBaseMs: 20 })
  // A turn of the killed process may still last.
  await sinks.start({ store, log: SILENT, nowMs: () => Date.now() + 60_000 })
  t.teardown(() => sinks.close())
  const ids = await storedIds(store)
  const counts = metrics.of('otlp')
  await until(() => counts.waiting === 0 && ids.every((id) => times.has(id)), DRILL_MS)
  await sinks.close()
}

async function storedIds(store: Store): Promise<readonly string[]> {
  return (await store.sightings.newest(null, 1_000_000)).map(({ document }) => document.id)
}

const ROUNDS = 4
/** A process starts in half a second, but not on a machine with much else to do. */
const DRILL_MS = 300_000
const PROCESS = new URL('./request-sink-process.ts', import.meta.url).pathname
