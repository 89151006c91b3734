import assert from 'node:assert/strict'
import { readdirSync, readFileSync, renameSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { publishedRanges } from '../../src/identity/address/ranges-document.ts'
import { type FetchedRanges, RangesStore, rangesFolder } from '../../src/identity/address/ranges-store.ts'
import { type Log, createLogTo } from '../../src/shared/log.ts'
import { temporaryFolder } from '../e2e/programs.ts'

const URL = 'https://bot.example/ips.json'
const NOW_MS = Date.UTC(2026, 10, 22, 12)

test('what is kept is there again, whole, and nothing else', async (t) => {
  const { store, lines } = kept(temporaryFolder(t))
  assert.deepEqual([await store.load(), await store.seenMs(URL)], [[], null])
  const first = fetched(['192.0.2.0/24', '2001:db8::/32'])
  await store.keep(first)
  await store.keep(fetched(['198.51.100.0/24'], 'https://other.example/ips.json'))
  const again = kept(join(store.folder, '..'))
  assert.deepEqual(
    new Set((await again.store.load()).map(({ url }) => url)),
    new Set([URL, 'https://other.example/ips.json']),
  )
  assert.deepEqual(
    (await again.store.load()).find(({ url }) => url === URL),
    first,
  )
  const changed = fetched(['203.0.113.0/24'])
  await store.keep(changed)
  assert.deepEqual(
    (await store.load()).find(({ url }) => url === URL),
    changed,
  )
  assert.deepEqual(readdirSync(store.folder).length, 2)
  assert.deepEqual(lines, [])
})

test('it is known when a list was seen last, without its file being another', async (t) => {
  const { store } = kept(temporaryFolder(t))
  await store.keep(fetched(['192.0.2.0/24']))
  const file = fileIn(store)
  const before = readFileSync(file)
  utimesSync(file, 1, 1)
  await store.saw(URL)
  assert.equal(await store.seenMs(URL), NOW_MS)
  assert.equal(statSync(file).mtimeMs, NOW_MS)
  assert.deepEqual(readFileSync(file), before)
  await store.saw('https://unknown.example/')
})

test('files that are no good are said once, and passed over', async (t) => {
  const { store, lines } = kept(temporaryFolder(t))
  await store.keep(fetched(['198.51.100.0/24'], 'https://other.example/ips.json'))
  await store.keep(fetched(['192.0.2.0/24']))
  const file = join(
    store.folder,
    readdirSync(store.folder).find((name) => readFileSync(join(store.folder, name), 'utf8').includes(URL))!,
  )
  const good = { url: URL, date: '2026-11-22', prefixes: ['192.0.2.0/24'] }
  const bad: readonly (readonly [content: string, why: RegExp])[] = [
    ['', /is not valid JSON/],
    ['{"url": "https://bot', /is not valid JSON/],
    ['null', /not named after its URL/],
    [JSON.stringify({ ...good, url: 'https://evil.example/' }), /not named after its URL/],
    [JSON.stringify({ ...good, date: '2027-01-01' }), /invalid or in the future/],
    [JSON.stringify({ ...good, date: 'soon' }), /invalid or in the future/],
    [JSON.stringify({ ...good, prefixes: 'all' }), /no list/],
    [JSON.stringify({ ...good, prefixes: [5] }), /no list/],
    [JSON.stringify({ ...good, prefixes: ['0.0.0.0/0'] }), /widest/],
    [JSON.stringify({ ...good, prefixes: ['10.0.0.0/8'] }), /public internet/],
    [' '.repeat(5 * 1_048_576), /larger than/],
  ]
  for (const [content, why] of bad) {
    writeFileSync(file, content)
    for (let i = 0; i < 2; i++)
      assert.deepEqual(
        (await store.load()).map(({ url }) => url),
        ['https://other.example/ips.json'],
      )
    assert.match(lines.at(-1)!, why)
  }
  const problems = lines.map((line) => (JSON.parse(line) as { problem: string }).problem)
  assert.deepEqual(problems, [...new Set(problems)], 'each is said once')
  renameSync(file, join(store.folder, 'stray.json'))
  assert.equal((await store.load()).length, 1)
})

test('a folder that cannot be written is said so', async (t) => {
  const folder = temporaryFolder(t)
  writeFileSync(rangesFolder(folder), 'a file is in its place')
  await assert.rejects(kept(folder).store.keep(fetched(['192.0.2.0/24'])), { code: 'RANGES_STORAGE' })
})

function kept(folder: string): { readonly store: RangesStore; readonly lines: string[]; readonly log: Log } {
  const lines: string[] = []
  const log = createLogTo('warn', { write: (line) => lines.push(line) })
  return { store: new RangesStore(rangesFolder(folder), log, () => NOW_MS), lines, log }
}

function fetched(prefixes: readonly string[], url = URL): FetchedRanges {
  return { url, published: publishedRanges(prefixes, url, '2026-11-22') }
}

function fileIn({ folder }: RangesStore): string {
  return join(folder, readdirSync(folder)[0]!)
}
