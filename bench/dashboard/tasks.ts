import { constants } from 'node:fs'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { RollupTally } from '../../src/plane/counts/rollup-tally.ts'
import { Store } from '../../src/store/store.ts'
import { executable, toured } from '../../test/dashboard/browser.ts'
import { Steps, TASKS } from '../../test/dashboard/tasks.ts'
import { SEEN, TestManagement } from '../../test/manage/management.ts'
import { HookReceiver } from '../../test/manage/webhook-receiver.ts'
import { SightingSource } from '../manage/sightings.ts'

/**
 * How long the tasks of test/dashboard/tasks.ts take a browser and a manager with many requests: from the first click to
 * the last thing that the person has to see. `npm run bench:dashboard-tasks -- --database FILE`, of a SQLite database
 * with requests that no process has open; `npm run bench:request-search -- --keep FILE` makes one. It is copied. With
 * `--task TEXT`, only tasks with this text in their names.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      database: { type: 'string' },
      rounds: { type: 'string', default: '5' },
      task: { type: 'string', default: '' },
    },
  })
  if (values.database === undefined) throw new Error('--database FILE is missing')
  const closers: (() => unknown)[] = []
  const owner = { teardown: (close: () => unknown) => void closers.unshift(close) }
  try {
    const folder = await mkdtemp(join(tmpdir(), 'gatehouse-tasks-'))
    owner.teardown(() => rm(folder, { recursive: true, force: true }))
    const file = join(folder, 'gatehouse.db')
    await copyFile(values.database, file, constants.COPYFILE_FICLONE)
    const storeUrl = `sqlite:${file}`
    say(`${await prepareStore(storeUrl)} requests\n`)
    const manage = await TestManagement.start(owner, {
      ...{ knows: true, allowPrivateWebhooks: true, storeUrl },
      seen: { ...SEEN, sightingsMs: 365 * DAY_MS, sightingsMax: 1_000_000_000 },
    })
    const browser = await chromium.launch({ executablePath: executable(), args: ['--no-sandbox'] })
    owner.teardown(() => browser.close())
    say('| task | steps | ms, median | longest | longest step, ms |\n|---|---:|---:|---:|---:|')
    for (const task of TASKS.filter(({ name }) => name.includes(values.task))) {
      const times: number[] = []
      const stepTimes: number[] = []
      let count = 0
      for (let round = 0; round < Number(values.rounds); round++) {
        const { url: hook } = await HookReceiver.start(owner)
        const place = { isEmpty: false, crawled: CRAWLED, hook }
        const requests = task.requests(place)
        for (let at = 0; at < requests.length; at += BATCH) await manage.take(requests.slice(at, at + BATCH))
        await task.prepare?.(manage, place)
        await manage.ask('PUT', '/v1/policy', { rules: [] }, { 'if-match': '*' })
        const context = await browser.newContext({
          ...{ viewport: { width: 1_440, height: 900 }, timezoneId: 'Europe/Berlin' },
          storageState: toured(manage.url),
        })
        const page = await context.newPage()
        await page.goto(`${manage.url}/dashboard/#key=${manage.adminKey}`)
        await page.getByText('Paths with the most requests').waitFor()
        const steps = new Steps(page)
        await task.run({ manage, page, steps, place })
        const ends = [...steps.startsMs.slice(1), performance.now()]
        stepTimes.push(...ends.map((end, at) => end - steps.startsMs[at]!))
        times.push(ends.at(-1)! - steps.startsMs[0]!)
        count = steps.count
        await context.close()
      }
      times.sort((one, other) => one - other)
      const shown = [times[times.length >> 1]!, times.at(-1)!, Math.max(...stepTimes)]
      say(`| ${[task.name, count, ...shown.map((ms) => ms.toFixed(0))].join(' | ')} |`)
    }
  } finally {
    for (const close of closers) await close()
  }
}

/** Counts ten million requests of the last week, as proxies do; returns the number of recorded ones. */
async function prepareStore(storeUrl: string): Promise<number> {
  const store = await Store.open(storeUrl)
  try {
    const nowMs = Date.now()
    const some = new SightingSource(nowMs).batch(PER_MINUTE)
    for (let dayMs = nowMs - 7 * DAY_MS; dayMs < nowMs; dayMs += DAY_MS) {
      const tally = new RollupTally()
      for (let atMs = dayMs; atMs < Math.min(nowMs, dayMs + DAY_MS); atMs += 60_000)
        for (const sighting of some) tally.add({ ...sighting, seenAtMs: atMs })
      await store.transaction((queries) => store.rollups.add(tally, SEEN.rollups, nowMs, queries))
    }
    return await store.sightings.lastNumber()
  } finally {
    await store.close()
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

const DAY_MS = 86_400_000
/** Ten million in a week. */
const PER_MINUTE = 1_000
/** The crawler is among the most frequent agents. */
const CRAWLED = 6_000
const BATCH = 2_000

await main()
