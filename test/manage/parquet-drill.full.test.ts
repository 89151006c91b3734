import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { SinkMetrics } from '../../src/manage/events/sinks/sink-metrics.ts'
import { RequestSinks } from '../../src/manage/export/request-sinks.ts'
import type { Store } from '../../src/store/store.ts'
import { ingestInto, seen, SILENT } from '../contract/seen.ts'
import { mountSmallDisk } from '../e2e/small-disk.ts'
import { freshUrl, KINDS, openAt, openFresh, type Owner } from '../store/databases.ts'
import { until } from '../until.ts'
import { rowsOf } from './parquet-rows.ts'
import { NO_SINKS } from './request-sink.ts'

const isRoot = process.getuid?.() === 0

for (const kind of KINDS)
  test(`${kind}: killed again and again, a process leaves no half file and no request twice or missing`, async (t) => {
    const url = await freshUrl(kind, t)
    const folder = await mkdtemp(join(tmpdir(), 'gatehouse-parquet-'))
    t.teardown(() => rm(folder, { recursive: true, force: true }))
    // The sink begins with the requests after its first start.
    await drain(t, await openAt(t, url), folder)
    const acknowledged: string[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const files = filesIn(folder).length
      const process = start(url, folder, round * 1_000_000)
      let text = ''
      process.stdout!.on('data', (piece) => {
        text += piece
      })
      await until(() => filesIn(folder).length > files + 3, DRILL_MS)
      await wait(Math.random() * 300) // at any point of its work
      process.kill('SIGKILL')
      await once(process, 'close')
      acknowledged.push(...text.slice(0, text.lastIndexOf('\n')).split(/\s/))
      for (const file of filesIn(folder))
        assert.ok((await rowsOf(readFileSync(join(folder, file)))).length > 0)
    }
    const store = await openAt(t, url)
    await drain(t, store, folder)
    const ids = await idsIn(folder)
    assert.deepEqual(ids.toSorted(), (await storedIds(store)).toSorted())
    assert.ok(acknowledged.length > ROUNDS * 300, `${acknowledged.length} acknowledged`)
    const written = new Set(ids)
    assert.deepEqual(
      acknowledged.filter((id) => !written.has(id)),
      [],
    )
  })

test('a full disk delays files, and no half file is left', {
  skip: !isRoot && 'needs root, to mount a disk',
}, async (t) => {
  const disk = mountSmallDisk(t, 'parquet', 2 * 1024 * 1024)
  assert.ok(disk !== null)
  const store = await openFresh('sqlite', t)
  const metrics = new SinkMetrics(['parquet'])
  const parquet = { place: { folder: disk.folder }, everyMs: 20, rowsMax: 10_000 }
  const sinks = new RequestSinks({ ...NO_SINKS, parquet }, metrics, disk.folder, PACE)
  await sinks.start({ store, log: SILENT, nowMs: Date.now })
  disk.fill()
  const { ingest } = ingestInto(store)
  await ingest.take(Array.from({ length: 500 }, (_, at) => seen(at)))
  const counts = metrics.of('parquet')
  await until(() => counts.failures > 2)
  assert.deepEqual([filesIn(disk.folder), counts.sent], [[], 0])
  disk.free()
  await until(() => counts.sent === 500)
  await sinks.close()
  assert.equal(new Set(await idsIn(disk.folder)).size, 500)
})

/** Writes what waits. */
async function drain(t: Owner, store: Store, folder: string): Promise<void> {
  const metrics = new SinkMetrics(['parquet'])
  const parquet = { place: { folder }, everyMs: 1, rowsMax: 50_000 }
  const sinks = new RequestSinks({ ...NO_SINKS, parquet }, metrics, folder, PACE)
  const log = SILENT
  // A turn of the killed process may still last.
  await sinks.start({ store, log, nowMs: () => Date.now() + 60_000 })
  t.teardown(() => sinks.close())
  await until(async () => (await idsIn(folder)).length >= (await storedIds(store)).length, DRILL_MS)
  await sinks.close()
}

async function idsIn(folder: string): Promise<readonly string[]> {
  const files = filesIn(folder).map((file) => rowsOf(readFileSync(join(folder, file))))
  return (await Promise.all(files)).flat().map(({ id }) => String(id))
}

async function storedIds(store: Store): Promise<readonly string[]> {
  return (await store.sightings.newest(null, 1_000_000)).map(({ document }) => document.id)
}

function filesIn(folder: string): readonly string[] {
  return globSync('app=*/**/*.parquet', { cwd: folder })
}

function start(url: string, folder: string, from: number): ChildProcess {
  const parquet = { place: { folder }, everyMs: 50, rowsMax: 300 }
  return spawn(process.execPath, [PROCESS, url, JSON.stringify({ parquet }), String(from)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

const ROUNDS = 5
/** A process starts in half a second, but not on a machine with much else to do. */
const DRILL_MS = 300_000
const PACE = { pollMs: 20, retryBaseMs: 20 }
const PROCESS = new URL('./request-sink-process.ts', import.meta.url).pathname
