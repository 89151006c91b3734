import assert from 'node:assert/strict'
import { readdirSync, readFileSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import {
  RangesRefresher,
  type RangesInUse,
  type RefreshSettings,
} from '../../src/identity/address/ranges-refresher.ts'
import { publishedRanges } from '../../src/identity/address/ranges-document.ts'
import { RangesStore } from '../../src/identity/address/ranges-store.ts'
import { createLogTo } from '../../src/shared/log.ts'
import { Metrics } from '../../src/shared/metrics.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { type Answer, DocumentServer, TEST_CA } from './document-server.ts'

type T = Parameters<typeof DocumentServer.start>[0] & Parameters<typeof temporaryFolder>[0]

const NOW_MS = Date.UTC(2026, 10, 22, 12)
const DAY_MS = 86_400_000
const FIRST = ['66.0.0.0/24', '66.0.1.0/24', '2a00::/48']

test('a new list is accepted, stored and reported once', async (t) => {
  const world = await begin(t)
  world.serve(prefixes(FIRST))
  world.use(null)
  await world.until({ new: 1 })
  await world.changed()
  assert.deepEqual(await world.kept(), FIRST)
  assert.deepEqual(world.said(), ['a list of published addresses has changed'])
  assert.equal(world.server.asked[0]!.headers['user-agent'], 'gatehouse')
})

test('what is the same, in whatever order and form, changes nothing', async (t) => {
  const world = await begin(t)
  world.serve(prefixes([...FIRST].reverse()))
  world.use(FIRST)
  await world.until({ same: 1 })
  assert.deepEqual([await world.kept(), world.changes()], [null, 0])
  assert.equal(await world.ageS(), 0)
})

test('it is asked with what its server said of it, and believed that it is the same', async (t) => {
  const world = await begin(t, { refreshMs: 20 })
  world.serve(prefixes(FIRST), { etag: '"1"', 'last-modified': 'Sun, 22 Nov 2026 10:00:00 GMT' })
  world.use(FIRST)
  await world.until({ same: 1 })
  world.answer((_request, response) => response.writeHead(304).end())
  const asked = world.server.asked.length
  await world.until({ same: 2 })
  const { headers } = world.server.asked[asked]!
  assert.deepEqual(
    [headers['if-none-match'], headers['if-modified-since']],
    ['"1"', 'Sun, 22 Nov 2026 10:00:00 GMT'],
  )
})

test('a list that was seen all the time does not look old, and is another once a week', async (t) => {
  const world = await begin(t)
  world.serve(prefixes(FIRST))
  world.use(FIRST, '2026-11-16')
  await world.until({ same: 1 })
  assert.equal(await world.kept(), null)
  assert.equal(await world.ageS(), 0)
  const later = await begin(t)
  later.serve(prefixes(FIRST))
  later.use(FIRST, '2026-11-15')
  await later.until({ same: 1 })
  await later.changed()
  assert.equal(later.file()!['date'], '2026-11-22')
})

test('whatever is wrong with what comes, nothing is kept, and it is said once', async (t) => {
  const huge = `["${'x'.repeat(5 * 1_048_576)}"]`
  const cases: readonly (readonly [outcome: string, answer: Answer])[] = [
    ['malformed', (_q, response) => response.end('<html>')],
    ['malformed', (_q, response) => response.end('{"prefixes": []}')],
    ['malformed', (_q, response) => response.end(JSON.stringify(prefixes(['10.0.0.0/8'])))],
    [
      'malformed',
      (_q, response) => response.end(JSON.stringify({ prefixes: [{ ip_prefix: '66.0.0.0/24' }] })),
    ],
    ['too-large', (_q, response) => response.end(huge)],
    ['redirect', (_q, response) => response.writeHead(302, { location: '/other' }).end()],
    ['status', (_q, response) => response.writeHead(503).end()],
    ['status', (_q, response) => response.writeHead(304).end()],
    ['timeout', () => undefined],
    ['network', (_q, response) => response.destroy()],
    ['held-back', (_q, response) => response.end(JSON.stringify(prefixes(['67.0.0.0/24'])))],
    ['held-back', (_q, response) => response.end(JSON.stringify(prefixes([...FIRST, '67.0.0.0/15'])))],
    ['held-back', (_q, response) => response.end(JSON.stringify(prefixes(FIRST.slice(0, 1))))],
  ]
  for (const [outcome, answer] of cases) {
    const world = await begin(t, { timeoutMs: 500, retryMs: 1 })
    world.answer(answer)
    world.use(FIRST)
    await world.until({ [outcome]: 3 })
    world.close()
    assert.deepEqual([await world.kept(), world.changes()], [null, 0], outcome)
    assert.deepEqual(world.said(), [
      'a list of published addresses was rejected: the previous list stays in use',
    ])
    assert.equal(world.lines[0]!['reason'], outcome)
    assert.equal(await world.metric('gatehouse_published_ranges_failing'), 1)
    assert.ok((await world.ageS())! >= 12 * 3600)
  }
})

test('what a server says once it is well again is taken', async (t) => {
  const world = await begin(t, { retryMs: 5 })
  world.answer((_request, response) => response.writeHead(500).end())
  world.use(FIRST)
  await world.until({ status: 1 })
  world.serve(prefixes([...FIRST, '66.0.2.0/24']))
  await world.until({ new: 1 })
  assert.equal(await world.metric('gatehouse_published_ranges_failing'), 0)
  assert.ok(world.said().includes('a list of published addresses is available again'))
})

test('no address of this machine is asked, and no http, unless that is allowed', async (t) => {
  const guarded = await begin(t, { allowPrivate: false, retryMs: 5 })
  guarded.serve(prefixes(FIRST))
  guarded.use(FIRST)
  await guarded.until({ address: 1 })
  assert.deepEqual(guarded.server.asked, [])
  const plain = await begin(t, { allowPrivate: false }, 'http')
  plain.use(FIRST)
  await plain.logged('a list of published addresses is not fetched')
  assert.equal(await plain.metric('gatehouse_published_ranges_failing'), 0)
})

test('what was seen lately is not fetched at once by who starts anew', async (t) => {
  const first = await begin(t)
  first.serve(prefixes(FIRST))
  first.use(null)
  await first.until({ new: 1 })
  const asked = first.server.asked.length
  const again = first.again()
  again.use(FIRST)
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.equal(first.server.asked.length, asked)
  assert.equal(await again.ageS(), 0, 'it is known when it was seen')
  utimesSync(first.path()!, (NOW_MS - DAY_MS) / 1000, (NOW_MS - DAY_MS) / 1000)
  const late = first.again()
  late.use(FIRST)
  await late.until({ same: 1 })
})

test('reports the age of lists without fetching if fetches are off', async (t) => {
  const world = await begin(t, { refreshMs: null })
  world.serve(prefixes(FIRST))
  world.use(FIRST, '2026-11-21')
  assert.equal(await world.ageS(), 36 * 3600)
  assert.deepEqual(world.server.asked, [])
})

test('a list that no agent has any more is not fetched any more', async (t) => {
  const world = await begin(t, { refreshMs: 20 })
  world.serve(prefixes(FIRST))
  world.use(FIRST)
  await world.until({ same: 1 })
  world.forget()
  const asked = world.server.asked.length
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.ok(world.server.asked.length <= asked + 1, 'but for one that was under way')
  assert.equal(await world.ageS(), null)
})

async function begin(t: T, given: Partial<RefreshSettings> = {}, scheme: 'http' | 'https' = 'https') {
  const server = await DocumentServer.start(t, scheme)
  const folder = temporaryFolder(t)
  return new World(t, server, folder, given)
}

class World {
  readonly server: DocumentServer
  readonly lines: Record<string, unknown>[] = []
  readonly #t: T
  readonly #folder: string
  readonly #given: Partial<RefreshSettings>
  readonly #store: RangesStore
  readonly #refresher: RangesRefresher
  readonly #metrics = new Metrics()
  #changes = 0

  constructor(t: T, server: DocumentServer, folder: string, given: Partial<RefreshSettings>) {
    this.server = server
    this.#t = t
    this.#folder = folder
    this.#given = given
    const log = createLogTo('info', { write: (line) => this.lines.push(JSON.parse(line)) })
    const nowMs = () => NOW_MS
    this.#store = new RangesStore(folder, log, nowMs)
    const settings = { refreshMs: DAY_MS, allowPrivate: true, nowMs, ca: TEST_CA, settleMs: 0, ...given }
    this.#refresher = new RangesRefresher(settings, this.#store, log, () => this.#changes++)
    this.#refresher.addMetrics(this.#metrics)
    t.teardown(() => this.close())
  }

  /** The same after a restart. */
  again(): World {
    return new World(this.#t, this.server, this.#folder, this.#given)
  }

  answer(answer: Answer): void {
    this.server.serve('/ips.json', answer)
  }

  serve(value: unknown, headers: Readonly<Record<string, string>> = {}): void {
    this.answer((_request, response) => response.writeHead(200, headers).end(JSON.stringify(value)))
  }

  use(ranges: readonly string[] | null, date = '2026-11-22'): void {
    const url = this.server.url('/ips.json', 'localhost')
    const published = ranges === null ? null : publishedRanges(ranges, url, date)
    const inUse: RangesInUse = { url, agent: 'bot', published }
    this.#refresher.use([inUse])
  }

  forget(): void {
    this.#refresher.use([])
  }

  close(): void {
    this.#refresher.close()
  }

  changes(): number {
    return this.#changes
  }

  said(): readonly unknown[] {
    return this.lines.map(({ message }) => message)
  }

  path(): string | null {
    const name = readdirSync(this.#folder)[0]
    return name === undefined ? null : join(this.#folder, name)
  }

  file(): Record<string, unknown> | null {
    const path = this.path()
    return path === null ? null : JSON.parse(readFileSync(path, 'utf8'))
  }

  async kept(): Promise<readonly string[] | null> {
    return (await this.#store.load())[0]?.published.prefixes ?? null
  }

  async metric(name: string, outcome: string | null = null): Promise<number | null> {
    const found = (await this.#metrics.read()).find((each) => each.name === name)
    const sample = found?.values.find(({ labels }) => outcome === null || labels['outcome'] === outcome)
    return sample?.value ?? null
  }

  ageS(): Promise<number | null> {
    return this.metric('gatehouse_published_ranges_age_seconds')
  }

  changed(): Promise<void> {
    return soon(async () => this.#changes > 0)
  }

  logged(message: string): Promise<void> {
    return soon(async () => this.said().includes(message))
  }

  async until(counts: Readonly<Record<string, number>>): Promise<void> {
    for (const [outcome, count] of Object.entries(counts))
      await soon(
        async () => (await this.metric('gatehouse_published_ranges_fetches_total', outcome))! >= count,
      )
  }
}

async function soon(holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await holds()); tries++) {
    assert.ok(tries < 2_000, 'it does not come')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

function prefixes(ranges: readonly string[]): unknown {
  return {
    creationTime: '2026-11-22T10:00:00.000000',
    prefixes: ranges.map((range) => ({ [range.includes(':') ? 'ipv6Prefix' : 'ipv4Prefix']: range })),
  }
}
