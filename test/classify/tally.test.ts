import assert from 'node:assert/strict'
import { test } from 'tap'
import type { AskedFor } from '../../src/classify/verdict/asked.ts'
import type { EvidenceKind } from '../../src/classify/known/evidence.ts'
import { Tally, WINDOW_MS } from '../../src/classify/verdict/tally.ts'

const NOW_MS = 1_800_000_000_000
const HOME = 'https://a.test/'

test('robots.txt first, and not later', async () => {
  assert.deepEqual(shown(['robots', '/robots.txt'], ['page', '/']), ['robots-first'])
  assert.deepEqual(shown(['page', '/'], ['robots', '/robots.txt']), [])
})

test('reading a sitemap is ordinary, but after robots.txt it marks a crawler', async () => {
  assert.deepEqual(shown(['sitemap', '/sitemap.xml']), ['asks-sitemap'])
  assert.deepEqual(shown(['sitemap', '/sitemap.xml'], ['robots', '/robots.txt']), ['asks-sitemap'])
  const both = shown(['robots', '/robots.txt'], ['page', '/'], ['sitemap', '/sitemap.xml'])
  assert.deepEqual(both, ['robots-first', 'crawls', 'asks-sitemap'])
})

test('links of one page are followed one after the other', async () => {
  const links = (...gaps: readonly number[]) => {
    const tally = new Tally()
    let nowMs = NOW_MS
    for (const [i, gap] of [0, ...gaps].entries()) {
      nowMs += gap
      tally.note('page', `/${i}`, HOME, 1, nowMs)
    }
    return tally.marks.kinds()
  }
  assert.deepEqual(links(10, 10), ['crawls'])
  assert.deepEqual(links(2000, 2000), ['crawls'])
  assert.deepEqual(links(10), [])
  assert.deepEqual(links(10, 2001, 10), [], 'a person read in between')
})

test('following redirects is not following links', async () => {
  const tally = new Tally()
  const targets = ['/a', '/b', '/c', '/d', '/e']
  for (const [i, target] of targets.entries())
    tally.note('page', target, i === 0 ? null : `https://a.test${targets[i - 1]}`, 1, NOW_MS + i)
  const checks = new Tally()
  for (const target of ['/a', '/b', '/c']) checks.note('check', target, null, 1, NOW_MS)
  assert.deepEqual([...tally.marks.kinds(), ...checks.marks.kinds()], [])
})

test('pages without a referer, and one page again and again, are no links', async () => {
  assert.deepEqual(shown(['page', '/'], ['page', '/b'], ['page', '/c'], ['page', '/d']), [])
  assert.deepEqual(shown(...times(30, () => ['page', '/', HOME] as const)), [])
  assert.deepEqual(shown(...times(30, (i) => ['page', `/?at=${i}`, HOME] as const)), [])
})

test('one HEAD after the other is the checking of links', async () => {
  assert.deepEqual(shown(...times(4, (i) => ['check', `/${i}`] as const)), ['crawls'])
  assert.deepEqual(shown(...times(30, () => ['check', '/health'] as const)), [])
})

test('many different pages are many, however slowly they are asked for within a window', async () => {
  const tally = new Tally()
  for (let i = 0; i < 40; i++) tally.note('page', `/page/${i}`, null, 1, NOW_MS + i * 7000)
  assert.deepEqual(tally.marks.kinds(), ['asks-broadly'])
})

test('few different pages are few, however often', async () => {
  const tally = new Tally()
  for (let i = 0; i < 2000; i++) tally.note('page', `/page/${i % 12}`, null, 1, NOW_MS + i * 2000)
  assert.deepEqual(tally.marks.kinds(), [])
})

test('breadth is counted well enough: 19 different pages are never many, and 34 hardly ever few', async () => {
  const isBroad = (pages: number, salt: number) => {
    const tally = new Tally()
    for (let i = 0; i < pages; i++) tally.note('page', `/${salt}/item-${i * 7}`, null, 1, NOW_MS + i * 5000)
    return tally.marks.has('asks-broadly')
  }
  const share = (pages: number) => times(1000, (i) => isBroad(pages, i)).filter(Boolean).length / 1000
  assert.equal(share(19), 0)
  assert.ok(share(34) > 0.99)
})

test('faster than a person reads: one page each two seconds, and as many at once as a window of tabs has', async () => {
  const isFast = (pages: number, everyMs: number) => {
    const tally = new Tally()
    for (let i = 0; i < pages; i++) tally.note('page', `/${i % 3}`, null, 1, NOW_MS + i * everyMs)
    return tally.marks.has('asks-fast')
  }
  assert.ok(isFast(22, 1))
  assert.ok(!isFast(20, 1))
  assert.ok(isFast(60, 1000))
  assert.ok(!isFast(1000, 2000))
})

test('what was shown is forgotten after a window or two', async () => {
  const after = (ms: number) => {
    const tally = new Tally()
    tally.note('sitemap', '/sitemap.xml', null, 1, NOW_MS)
    tally.note('part', '/a.css', null, 1, NOW_MS)
    tally.note('other', '/api', null, 1, NOW_MS + ms)
    return [...tally.marks.kinds(), tally.hasParts]
  }
  assert.deepEqual(after(WINDOW_MS - 1), ['asks-sitemap', true])
  assert.deepEqual(after(2 * WINDOW_MS - 1), ['asks-sitemap', true])
  assert.deepEqual(after(2 * WINDOW_MS), [false])
  assert.deepEqual(after(1000 * WINDOW_MS), [false])
})

test('traffic that goes on is forgotten, too, but for the last two windows', async () => {
  const tally = new Tally()
  tally.note('robots', '/robots.txt', null, 1, NOW_MS)
  for (let ms = 0; ms < 3 * WINDOW_MS; ms += 1000) tally.note('other', '/api', null, 1, NOW_MS + ms)
  assert.deepEqual(tally.marks.kinds(), [])
  for (let i = 0; i < 60; i++)
    tally.note('page', `/page/${i}`, null, 1, NOW_MS + 3 * WINDOW_MS + (i * WINDOW_MS) / 10)
  assert.deepEqual(tally.marks.kinds(), [], 'ten pages in each window')
})

test('a clock that goes back makes no client fast, and keeps nothing forever', async () => {
  const tally = new Tally()
  for (let i = 0; i < 10; i++) tally.note('page', `/${i}`, null, 1, NOW_MS)
  tally.note('robots', '/robots.txt', null, 1, NOW_MS - 10 * WINDOW_MS)
  assert.deepEqual(tally.marks.kinds(), ['robots-first'])
  for (let i = 0; i < 10; i++) tally.note('page', `/${i}`, null, 1, NOW_MS - 10 * WINDOW_MS)
  assert.deepEqual(tally.marks.kinds(), ['robots-first'])
})

test('from many: many places and many pages', async () => {
  const isFromMany = (networks: number, pages: number) => {
    const tally = new Tally()
    for (let i = 0; i < pages; i++)
      tally.note('page', `/p/${i}`, null, Math.imul(i % networks, 0x9e3779b1), NOW_MS)
    return tally.isFromMany
  }
  assert.ok(isFromMany(100, 200))
  assert.ok(!isFromMany(3, 200))
  assert.ok(!isFromMany(100, 30))
})

test('bare are pages of which hardly any has more than itself', async () => {
  const isBare = (pages: number, parts: number) => {
    const tally = new Tally()
    for (let i = 0; i < pages; i++) tally.note('page', `/p/${i}`, null, 1, NOW_MS)
    for (let i = 0; i < parts; i++) tally.note(i % 2 === 0 ? 'part' : 'aside', '/a', null, 1, NOW_MS)
    return tally.isBare
  }
  assert.ok(isBare(200, 0))
  assert.ok(isBare(200, 9))
  assert.ok(!isBare(200, 10))
  assert.ok(!isBare(0, 0))
})

type Noted = readonly [asked: AskedFor, target: string, referer?: string]

function shown(...noted: readonly Noted[]): EvidenceKind[] {
  const tally = new Tally()
  // Slowly enough to be a person, but for links.
  for (const [i, [asked, target, referer = null]] of noted.entries())
    tally.note(asked, target, referer, 1, NOW_MS + i * 1900)
  return tally.marks.kinds()
}

function times<T>(count: number, make: (i: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, i) => make(i))
}
