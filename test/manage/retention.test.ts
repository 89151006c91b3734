import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'tap'
import { parseConfig } from '../../src/config/config.ts'
import type { ApiContext } from '../../src/manage/api/context.ts'
import { FolderPlace } from '../../src/manage/export/folder-place.ts'
import { S3Place } from '../../src/manage/export/s3-place.ts'
import type { RateLimits } from '../../src/manage/limits/rate-limits.ts'
import { periodicJobs } from '../../src/manage/periodic-jobs.ts'
import type { Store } from '../../src/store/store.ts'
import { DAY_MS, HOUR_MS, NOW_MS } from '../contract/seen.ts'
import { KINDS, openFresh } from '../store/databases.ts'
import { SETTINGS } from './management.ts'
import { startSink } from './request-sink.ts'
import { S3Server } from './s3-server.ts'

test('retention takes the place of the settings elsewhere, which are in force without it', async () => {
  const before = settingsOf('')
  assert.deepEqual(
    [before.sightings.retentionMs, before.events.retentionMs, before.store.auditRetentionMs],
    [DAY_MS, 30 * DAY_MS, 400 * DAY_MS],
  )
  const elsewhere = settingsOf('sightings: {retention: 2h}\nevents: {retention: 3h}\n')
  assert.deepEqual(
    [elsewhere.sightings.retentionMs, elsewhere.events.retentionMs],
    [2 * HOUR_MS, 3 * HOUR_MS],
  )
  const all = 'requests: 1h, events: 2h, deliveries: 3h, audit: 4d, payments: 5d, minutes: 30h, hours: 40d'
  const here = settingsOf(
    `sightings: {retention: 2h}\nretention: {${all}, days: 50d, tasks: 6h, feedback: 7d, parquet: 8d}\n`,
  )
  assert.deepEqual(
    [here.sightings.retentionMs, here.events.retentionMs, here.webhooks.retentionMs],
    [HOUR_MS, 2 * HOUR_MS, 3 * HOUR_MS],
  )
  assert.deepEqual(
    [here.store.auditRetentionMs, here.payments.retentionMs, here.rollups],
    [4 * DAY_MS, 5 * DAY_MS, { minutesMs: 30 * HOUR_MS, hoursMs: 40 * DAY_MS, daysMs: 50 * DAY_MS }],
  )
  const { tasksMs, feedbackMs, parquetMs } = here.retention
  assert.deepEqual([tasksMs, feedbackMs, parquetMs], [6 * HOUR_MS, 7 * DAY_MS, 8 * DAY_MS])
})

for (const kind of KINDS)
  test(`${kind}: feedback and tasks are deleted after their retention`, async (t) => {
    const store = await openFresh(kind, t)
    for (const [id, atMs] of [
      ['old', NOW_MS - 2 * DAY_MS],
      ['new', NOW_MS - HOUR_MS],
    ] as const) {
      await store.transaction((queries) =>
        store.feedback.put(
          {
            ...{ id, decisionId: id, atMs, principal: 'key_1', told: 'human', toldSoftwareId: null },
            ...{ verdict: 'agent', verdictSoftwareId: null, fingerprints: [{ type: 'ja4', value: 'x' }] },
          },
          queries,
        ),
      )
      const task = { id, principal: 'key_1', apps: '*', type: 'detect', atMs, chunks: [] } as const
      await store.tasks.addDone(task, { number: 0, results: [], failed: 0 }, atMs)
    }
    const kept = async () => {
      const [told] = await store.feedback.toldOf('ja4', ['x'])
      return [told?.count ?? 0, (await store.tasks.recent('key_1', 10)).length]
    }
    await forget(store, { feedbackRetentionMs: null, taskRetentionMs: 3 * DAY_MS })
    assert.deepEqual(await kept(), [2, 2])
    await forget(store, { feedbackRetentionMs: DAY_MS, taskRetentionMs: DAY_MS })
    assert.deepEqual(await kept(), [1, 1])
  })

test('old days of Parquet files are deleted, and nothing else in their folder', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-retention-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const file = '000000000001-0123456789abcdef.parquet'
  const files = [
    `app=shop/date=2026-11-17/hour=23/${file}`,
    `app=shop/date=2026-11-18/hour=00/${file}`,
    `app=shop/date=2026-11-18/hour=00/notes.txt`,
    `app=shop/date=2026-11-19/hour=00/${file}`,
    `app=shop/date=2026-99-99/hour=00/${file}`,
    `app=shop/other/hour=00/${file}`,
    `elsewhere/date=2026-11-17/hour=00/${file}`,
  ]
  for (const path of files) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), '')
  }
  await symlink(join(folder, 'elsewhere'), join(folder, 'app=linked'))
  const place = new FolderPlace(folder)
  await place.forget(Date.UTC(2026, 10, 19))
  await place.forget(Date.UTC(2026, 10, 19))
  const left = (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
  assert.deepEqual(left.sort(), files.slice(2).sort())
  assert.deepEqual((await readdir(join(folder, 'app=shop'))).sort(), [
    ...['date=2026-11-18', 'date=2026-11-19', 'date=2026-99-99', 'other'],
  ])
  await new FolderPlace(join(folder, 'missing')).forget(NOW_MS)
})

test('old days of Parquet files are deleted from a bucket, and nothing else in it', async (t) => {
  const server = await S3Server.start(t, { AKID: 'secret' })
  const file = '000000000001-0123456789abcdef.parquet'
  const prefix = "gate & <house>'s/"
  const [old, left] = [
    Array.from({ length: 5 }, (_, hour) => `${prefix}app=shop/date=2026-11-17/hour=0${hour}/${file}`),
    [
      ...[`${prefix}app=blog/date=2026-11-19/hour=00/${file}`, `${prefix}app=shop/date=2026-11-17/notes.txt`],
      ...[
        `${prefix}app=shop/date=2026-11-19/hour=00/${file}`,
        `${prefix}app=shop/date=2026-99-99/hour=00/${file}`,
      ],
      ...[`${prefix}other/date=2026-11-17/hour=00/${file}`, `app=shop/date=2026-11-17/hour=00/${file}`],
      ...Array.from({ length: 5 }, (_, hour) => `${prefix}app=blog/date=2026-11-20/hour=0${hour}/${file}`),
    ],
  ]
  for (const key of [...old, `${prefix}app=a/date=2026-11-18/hour=23/${file}`, ...left])
    server.objects.set(`/logs/${key}`, Buffer.from('PAR1'))
  const place = new S3Place({
    ...{ bucket: 'logs', prefix, region: 'eu-central-1', endpoint: server.url, isPathStyle: true, ca: null },
    credentials: async () => ({ accessKeyId: 'AKID', secretAccessKey: 'secret', sessionToken: null }),
    draftFolder: tmpdir(),
  })
  t.teardown(() => place.close())
  await place.forget(Date.UTC(2026, 10, 19))
  assert.deepEqual(server.refusals, [])
  assert.deepEqual([...server.objects.keys()].sort(), left.map((key) => `/logs/${key}`).sort())
  // A list is not read further than to the first page with a newer file.
  assert.equal(server.lists.filter((each) => each.endsWith('app=blog/')).length, 1)
  // A list without an end.
  server.nextPage = '+/AAAA'
  await assert.rejects(place.forget(Date.UTC(2026, 10, 19)), /names the same page of a list again/)
  server.nextPage = ''
  await place.forget(Date.UTC(2026, 10, 19))
  server.mood = 'denies'
  await assert.rejects(place.forget(Date.UTC(2027, 0, 1)), /answered 403 AccessDenied/)
  assert.equal(server.objects.size, left.length)
})

test('the setting deletes files from a bucket', async (t) => {
  const store = await openFresh('sqlite', t)
  const server = await S3Server.start(t, { AKID: 'secret' })
  server.objects.set(
    '/logs/app=a/date=2026-11-01/hour=00/000000000001-0123456789abcdef.parquet',
    Buffer.alloc(1),
  )
  const s3 = {
    ...{
      bucket: 'logs',
      prefix: '',
      region: 'eu-central-1',
      endpoint: server.url,
      isPathStyle: true,
      ca: null,
    },
    credentials: async () => ({ accessKeyId: 'AKID', secretAccessKey: 'secret', sessionToken: null }),
  }
  const parquet = { place: { s3 }, everyMs: 60_000, rowsMax: 10 }
  const { sinks: unlimited } = await startSink(t, store, { parquet })
  await unlimited.forget(NOW_MS)
  assert.equal(server.objects.size, 1)
  const { sinks } = await startSink(t, store, { parquet: { ...parquet, keptMs: DAY_MS } })
  await sinks.forget(NOW_MS)
  assert.equal(server.objects.size, 0)
})

function settingsOf(yaml: string) {
  const file = { name: 'gatehouse.yaml', text: `proxy: {upstream: "http://127.0.0.1:3000"}\n${yaml}` }
  return parseConfig({ flags: {}, env: {}, file }).config
}

/** Runs the jobs that these settings are for, as the management plane does. */
async function forget(store: Store, kept: Partial<typeof SETTINGS>): Promise<void> {
  const jobs = periodicJobs({ store } as ApiContext, {} as RateLimits, { ...SETTINGS, ...kept })
  for (const job of jobs) if (/old (?:tasks|feedback)/.test(job.name)) await job.run(NOW_MS)
}
