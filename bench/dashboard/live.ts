import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type BrowserContext, type CDPSession, chromium, type Page } from 'playwright-core'
import { executable, toured } from '../../test/dashboard/browser.ts'
import { TestManagement } from '../../test/manage/management.ts'
import { SightingSource } from '../manage/sightings.ts'

/**
 * The page Live in headless Chromium while a manager takes in many requests a second. Each minute: frames, the gaps
 * between them, long tasks, and the heap after a forced collection. An empty page in the same browser shows what the
 * machine costs. `npm run bench:live -- [--minutes N] [--rate N]`
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { minutes: { type: 'string', default: '60' }, rate: { type: 'string', default: '2000' } },
  })
  const closers: (() => unknown)[] = []
  const owner = { teardown: (close: () => unknown) => void closers.unshift(close) }
  try {
    const manage = await TestManagement.start(owner, { knows: true })
    const stop = new AbortController()
    const feeding = feed(manage, Number(values.rate), stop.signal)
    const browser = await chromium.launch({ executablePath: executable(), args: ['--no-sandbox'] })
    owner.teardown(() => browser.close())
    const context = await browser.newContext({ storageState: toured(manage.url) })
    const live = await watched(context, `${manage.url}/dashboard/live#key=${manage.adminKey}`)
    await live.page.getByText('Listening').waitFor()
    const empty = await watched(await browser.newContext(), 'about:blank')
    say(`${values.rate} requests/s, Chromium ${browser.version()}\n`)
    say(HEAD)
    for (let minute = 0; minute <= Number(values.minutes); minute++) {
      await pause(MINUTE_MS)
      const [seen, idle] = [await frames(live), await frames(empty)]
      const heap = await heapOf(live)
      const shown = await live.page.locator('.figures dd').first().textContent()
      say(
        `| ${[minute, seen.frames, ...gaps(seen), ...gaps(idle), ...tasks(seen), ...heap, shown].join(' | ')} |`,
      )
    }
    stop.abort()
    await feeding
  } finally {
    for (const close of closers) await close()
  }
}

/** As a proxy sends them: a batch each tenth of a second. */
async function feed(manage: TestManagement, rate: number, stop: AbortSignal): Promise<void> {
  const source = new SightingSource(Date.now())
  const startedMs = Date.now()
  for (let sent = 0; !stop.aborted; await pause(BATCH_MS)) {
    const seenAtMs = Date.now()
    const due = Math.floor((rate * (seenAtMs - startedMs)) / 1_000) - sent
    sent += Math.max(0, due)
    // After a pause of the machine, the manager takes no more than its queue holds.
    const batch = source.batch(Math.min(due, BATCH_MAX)).map((each) => ({ ...each, seenAtMs }))
    if (batch.length > 0) await manage.take(batch)
  }
}

interface Watched {
  readonly page: Page
  readonly session: CDPSession
}

interface Frames {
  readonly frames: number
  /** Gaps of more than two frames, of more than 100 ms, and the longest. */
  readonly dropped: number
  readonly long: number
  readonly longestMs: number
  readonly tasks: number
  readonly longestTaskMs: number
}

async function watched(context: BrowserContext, address: string): Promise<Watched> {
  await context.addInitScript(WATCH)
  const page = await context.newPage()
  await page.goto(address)
  return { page, session: await context.newCDPSession(page) }
}

async function frames({ page }: Watched): Promise<Frames> {
  return (await page.evaluate('frameCounts()')) as Frames
}

function gaps({ dropped, long, longestMs }: Frames): readonly (string | number)[] {
  return [dropped, long, longestMs.toFixed(0)]
}

function tasks({ tasks, longestTaskMs }: Frames): readonly (string | number)[] {
  return [tasks, longestTaskMs.toFixed(0)]
}

/** MiB, nodes and listeners. The collection makes a gap, which is not counted. */
async function heapOf({ page, session }: Watched): Promise<readonly (string | number)[]> {
  await session.send('HeapProfiler.collectGarbage')
  const { usedSize } = await session.send('Runtime.getHeapUsage')
  const { nodes, jsEventListeners } = await session.send('Memory.getDOMCounters')
  await page.evaluate('frameCounts()')
  return [(usedSize / 1_048_576).toFixed(2), nodes, jsEventListeners]
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

const MINUTE_MS = 60_000
const BATCH_MS = 100
const BATCH_MAX = 2_000
const HEAD = `| minute | frames | gaps > 34 ms | > 100 ms | longest, ms | empty page: > 34 ms | > 100 ms | longest, ms | long tasks | longest, ms | heap, MiB | nodes | listeners | requests/minute shown |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|`
/** Each call tells what came since the call before. */
const WATCH = `
  const none = () => ({ frames: 0, dropped: 0, long: 0, longestMs: 0, tasks: 0, longestTaskMs: 0 })
  let counts = none()
  let last = performance.now()
  requestAnimationFrame(function frame(now) {
    const gap = now - last
    last = now
    counts.frames++
    if (gap > 34) counts.dropped++
    if (gap > 100) counts.long++
    counts.longestMs = Math.max(counts.longestMs, gap)
    requestAnimationFrame(frame)
  })
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) {
      counts.tasks++
      counts.longestTaskMs = Math.max(counts.longestTaskMs, duration)
    }
  }).observe({ entryTypes: ['longtask'] })
  window.frameCounts = () => {
    const read = counts
    counts = none()
    last = performance.now()
    return read
  }
`

await main()
