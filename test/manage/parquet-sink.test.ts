import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { newCounts } from '../../src/manage/events/sinks/sink-metrics.ts'
import { FolderPlace } from '../../src/manage/export/folder-place.ts'
import { ParquetSink } from '../../src/manage/export/parquet-sink.ts'
import type { ParquetSettings } from '../../src/manage/export/request-sinks.ts'
import type { Store } from '../../src/store/store.ts'
import { HOUR_MS, ingestInto, NOW_MS, seen, START_MS } from '../contract/seen.ts'
import { freshUrl, KINDS, openAt, openFresh, type Owner } from '../store/databases.ts'
import { until } from './event-reader.ts'
import { rowsOf } from './parquet-rows.ts'
import { dyingAt, startSink } from './request-sink.ts'
import { S3Server } from './s3-server.ts'

for (const kind of KINDS) {
  test(`${kind}: requests are in a folder for each app, day and hour, each once`, async (t) => {
    const store = await openFresh(kind, t)
    const folder = await folderFor(t)
    const { ingest } = ingestInto(store)
    await ingest.take([seen(0, { path: '/before' })])
    const first = await started(t, store, { place: { folder }, everyMs: 100, rowsMax: 50_000 })
    const sightings = Array.from({ length: 60 }, (_, at) =>
      seen(at + 1, { app: ['shop', 'blog', 'default'][at % 3]!, sampled: at % 2 === 0 ? 0.25 : null }),
    )
    const late = seen(100, {
      app: 'shop',
      seenAtMs: START_MS - HOUR_MS,
      evidence: ['a', 'b'],
      purposes: ['search'],
    })
    await ingest.take([...sightings, late])
    await until(() => first.counts().sent === 61)
    assert.deepEqual(
      [...new Set(parquetFiles(folder).map((file) => file.slice(0, file.lastIndexOf('/'))))].sort(),
      [
        'app=blog/date=2026-11-20/hour=15',
        'app=default/date=2026-11-20/hour=15',
        'app=shop/date=2026-11-20/hour=14',
        'app=shop/date=2026-11-20/hour=15',
      ],
    )
    const rows = await allRows(folder)
    assert.deepEqual(idsOf(rows), [...sightings, late].map(({ id }) => id).sort())
    const [one] = rows.filter(({ id }) => id === late.id)
    assert.deepEqual(
      [one!['seen_at'], one!['evidence'], one!['agent_purpose'], one!['weight'], one!['ja4']],
      [new Date(late.seenAtMs), ['a', 'b'], ['search'], 1, late.ja4],
    )
    assert.equal(
      rows.reduce((sum, { weight }) => sum + Number(weight), 0),
      30 * 4 + 31,
    )
    assert.equal((await stat(join(folder, parquetFiles(folder)[0]!))).mode & 0o777, 0o600)
    await first.sinks.close()
    await ingest.take([seen(200, { path: '/later' })])
    const second = await started(t, store, { place: { folder }, everyMs: 100, rowsMax: 50_000 })
    await until(() => second.counts().sent === 1)
    assert.equal((await allRows(folder)).length, 62)
    assert.match(await second.text(), /gatehouse_sink_requests_total\{sink="parquet"\} 1\n/)
    await until(() => second.counts().waiting === 0)
    await second.sinks.close()
  })

  test(`${kind}: a process that dies before it has noted a piece leaves files that its successor replaces`, async (t) => {
    const store = await openFresh(kind, t)
    const folder = await folderFor(t)
    const settings = { place: { folder }, everyMs: 20, rowsMax: 100 }
    const { ingest } = ingestInto(store)
    const dying = await started(t, dyingAt(store), settings, ['shop'])
    const sightings = Array.from({ length: 150 }, (_, at) =>
      seen(at, { app: at % 3 === 0 ? 'blog' : 'shop' }),
    )
    await ingest.take(sightings.slice(0, 30))
    await until(() => parquetFiles(folder).length === 1)
    const before = readFileSync(join(folder, parquetFiles(folder)[0]!))
    // More than the piece that is planned.
    await ingest.take(sightings.slice(30))
    await dying.sinks.close()
    const next = await started(t, store, settings, ['shop'])
    const wanted = sightings.filter(({ app }) => app === 'shop')
    await until(async () => next.counts().sent === wanted.length)
    assert.deepEqual(idsOf(await allRows(folder)), wanted.map(({ id }) => id).sort())
    assert.ok(parquetFiles(folder).some((file) => readFileSync(join(folder, file)).equals(before)))
    await next.sinks.close()
  })
}

test('postgres: of two processes one at a time writes, and the second when the first is gone', async (t) => {
  const url = await freshUrl('postgres', t)
  const [one, other] = [await openAt(t, url), await openAt(t, url)]
  const folder = await folderFor(t)
  const settings = { place: { folder }, everyMs: 50, rowsMax: 7 }
  const sinks = [await started(t, one, settings), await started(t, other, settings)]
  const { ingest } = ingestInto(one)
  const sightings = Array.from({ length: 40 }, (_, at) => seen(at))
  await ingest.take(sightings.slice(0, 20))
  await until(() => sinks.reduce((sum, each) => sum + each.counts().sent, 0) === 20)
  assert.equal(Math.min(...sinks.map((each) => each.counts().sent)), 0)
  const [first, second] = sinks[0]!.counts().sent === 20 ? sinks : sinks.toReversed()
  await first!.sinks.close()
  await ingest.take(sightings.slice(20))
  await until(() => second!.counts().sent === 20)
  assert.deepEqual(idsOf(await allRows(folder)), sightings.map(({ id }) => id).sort())
  await second!.sinks.close()
})

test('a bucket has each file once it takes them, whatever it answered before', async (t) => {
  const store = await openFresh('sqlite', t)
  const server = await S3Server.start(t, { AKIDEXAMPLE: SECRET })
  const { ingest } = ingestInto(store)
  const { sinks, counts, said } = await started(t, store, bucketAt(server.url))
  const sightings = Array.from({ length: 50 }, (_, at) => seen(at, { app: at % 2 === 0 ? 'shop' : 'blog' }))
  for (const [at, mood] of (['denies', 'slows down', 'resets', 'hangs', 'takes'] as const).entries()) {
    server.mood = mood
    await ingest.take(sightings.slice(at * 10, at * 10 + 10))
    const failures = counts().failures
    await until(() => (mood === 'takes' ? counts().sent === 50 : counts().failures > failures))
  }
  assert.deepEqual(server.refusals, [])
  const rows = (await Promise.all([...server.objects.values()].map(rowsOf))).flat()
  assert.deepEqual(idsOf(rows), sightings.map(({ id }) => id).sort())
  for (const name of server.objects.keys())
    assert.match(
      name,
      /^\/logs\/gate house\/app=(shop|blog)\/date=2026-11-20\/hour=15\/\d{12}-[0-9a-f]{16}\.parquet$/,
    )
  const lines = said()
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).message),
    ['a sink takes no requests; it is tried again', 'a sink takes requests again'],
  )
  assert.match(lines[0]!, /127\.0\.0\.1:\d+ answered 403 AccessDenied/)
  assert.ok(!lines.join().includes(SECRET) && !lines.join().includes('AKID'))
  await sinks.close()
})

test('a bucket that knows another secret gets nothing, and the one of the moment is used', async (t) => {
  const store = await openFresh('sqlite', t)
  const server = await S3Server.start(t, { AKIDEXAMPLE: SECRET })
  const { ingest } = ingestInto(store)
  let secret = 'an-old-one'
  const place = bucketAt(server.url, async () => ({ ...CREDENTIALS, secretAccessKey: secret }))
  const { sinks, counts } = await started(t, store, place)
  await ingest.take([seen(1)])
  await until(() => counts().failures > 0)
  assert.deepEqual([server.objects.size, server.refusals[0]], [0, 'signature'])
  secret = SECRET
  await until(() => server.objects.size === 1)
  await sinks.close()
})

test('hostile values arrive as they are stored', async (t) => {
  const store = await openFresh('sqlite', t)
  const folder = await folderFor(t)
  const { sinks, counts } = await started(t, store, { place: { folder }, everyMs: 50, rowsMax: 50_000 })
  const { ingest } = ingestInto(store)
  const hostile = [
    '\0',
    '\ud800x',
    'é€😀\u202e',
    '=1+1\r\n"',
    '',
    '\u{fffd}',
    'x'.repeat(5_000),
    '../../etc',
    '',
  ]
  await ingest.take(
    hostile.map((text, at) =>
      seen(at, { path: `/${text}`, userAgent: text, host: text || null, evidence: [text, text] }),
    ),
  )
  await until(() => counts().sent === hostile.length)
  const stored = new Map(
    (await store.sightings.newest(null, 100)).map(({ document }) => [document.id as string, document]),
  )
  for (const row of await allRows(folder)) {
    const sighting = stored.get(String(row['id']))!
    assert.deepEqual(
      [row['path'], row['user_agent'], row['host'], row['evidence']],
      [sighting.path, sighting.userAgent, sighting.host, sighting.evidence],
    )
  }
  assert.equal(parquetFiles(folder).length, 1)
  await sinks.close()
})

test('requests that were deleted before they could be written are counted', async (t) => {
  const store = await openFresh('sqlite', t)
  const folder = join(await folderFor(t), 'file')
  await writeFile(folder, 'a file')
  const { sinks, counts, said, text } = await started(t, store, {
    place: { folder },
    everyMs: 20,
    rowsMax: 50_000,
  })
  const { ingest } = ingestInto(store)
  await ingest.take(Array.from({ length: 30 }, (_, at) => seen(at)))
  await until(() => counts().failures > 0 && counts().waiting === 30)
  while (await store.sightings.forget(0, NOW_MS, 10));
  await until(() => counts().lost > 0)
  assert.match(await text(), /gatehouse_sink_requests_lost_total\{sink="parquet"\} 20\n/)
  assert.match(await text(), /gatehouse_sink_lag_seconds\{sink="parquet"\} [\d.]*[1-9]/)
  await rm(folder)
  await until(() => counts().sent === 10)
  assert.equal((await allRows(folder)).length, 10)
  assert.equal(said().filter((line) => line.includes('were deleted before')).length, 1)
  await sinks.close()
})

test('a draft that a killed process left behind is removed', async (t) => {
  const store = await openFresh('sqlite', t)
  const folder = await folderFor(t)
  const place = { place: { folder }, everyMs: 50, rowsMax: 50_000 }
  const { sinks, counts } = await started(t, store, place)
  const { ingest } = ingestInto(store)
  await ingest.take([seen(0)])
  await until(() => counts().sent === 1)
  const draft = join(folder, '.drafts', 'old.tmp')
  await writeFile(draft, 'PAR1')
  await utimes(draft, 0, 0)
  await ingest.take(Array.from({ length: 100 }, (_, at) => seen(at + 1)))
  await until(() => counts().sent === 101)
  assert.deepEqual(await readdir(join(folder, '.drafts')), [])
  await sinks.close()
})

test('a file that has grown too large is followed by another', async (t) => {
  const store = await openFresh('sqlite', t)
  const folder = await folderFor(t)
  const { ingest } = ingestInto(store)
  await ingest.take(Array.from({ length: 4_100 }, (_, at) => seen(at)))
  const counts = newCounts()
  const sink = new ParquetSink({ store, place: new FolderPlace(folder), apps: [], counts, fileBytesMax: 1 })
  await sink.write([{ after: 0, last: 4_100, seenAtMs: 0 }])
  const files = parquetFiles(folder)
  assert.equal(files.length, 2)
  assert.equal(new Set(idsOf(await allRows(folder))).size, 4_100)
  // By another process.
  const again = new ParquetSink({ store, place: new FolderPlace(folder), apps: [], counts, fileBytesMax: 1 })
  await again.write([{ after: 0, last: 4_100, seenAtMs: 0 }])
  assert.deepEqual(parquetFiles(folder), files)
})

function started(t: Owner, store: Store, parquet: ParquetSettings, apps: readonly string[] = []) {
  return startSink(t, store, { parquet, apps })
}

function bucketAt(endpoint: string, credentials = async () => CREDENTIALS): ParquetSettings {
  return {
    place: {
      s3: {
        ...{ bucket: 'logs', prefix: 'gate house/', region: 'eu-central-1', endpoint, isPathStyle: true },
        ...{ ca: null, credentials, timeoutMs: 1_000 },
      },
    },
    ...{ everyMs: 20, rowsMax: 50_000 },
  }
}

async function folderFor(t: Owner): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'gatehouse-parquet-'))
  t.teardown(() => rm(made, { recursive: true, force: true }))
  return made
}

function parquetFiles(folder: string): readonly string[] {
  return globSync('app=*/**/*.parquet', { cwd: folder }).sort()
}

async function allRows(folder: string): Promise<readonly Record<string, unknown>[]> {
  const files = parquetFiles(folder).map((file) => rowsOf(readFileSync(join(folder, file))))
  return (await Promise.all(files)).flat()
}

function idsOf(rows: readonly Record<string, unknown>[]): readonly unknown[] {
  return rows.map(({ id }) => id).sort()
}

const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
const CREDENTIALS = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: SECRET,
  sessionToken: null as string | null,
}
