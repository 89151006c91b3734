import assert from 'node:assert/strict'
import { test } from 'tap'
import { Conduct } from '../../src/classify/verdict/conduct.ts'
import { type EvidenceKind, EvidenceSet } from '../../src/classify/known/evidence.ts'
import { HeaderIndex } from '../../src/classify/known/index/header-index.ts'
import { Reading } from '../../src/classify/verdict/reading.ts'
import type { Stack } from '../../src/classify/known/stack.ts'
import { Traffic } from '../../src/classify/verdict/traffic.ts'
import { type Claim, UserAgentIndex } from '../../src/classify/known/user-agent.ts'
import type { ConnectionPrint } from '../../src/fingerprint/print.ts'
import type { StableKey } from '../../src/fingerprint/stable-key.ts'
import type { RequestHead } from '../../src/wire/request-head.ts'

/** A request: its target, and headers after it. */
type Asked = readonly [target: string, ...headers: readonly string[]]

const NOW_MS = 1_800_000_000_000
const REFERER = ['Referer', 'https://a.test/'] as const
const NAVIGATION = ['sec-fetch-dest', 'document'] as const
const OF_SCRIPT = ['sec-fetch-dest', 'empty'] as const
const IMAGE: Asked = ['/a.png', 'sec-fetch-dest', 'image']
const HELLO = 'gs1-t13d1516h2-8daaf6152771-d8a2da3f94cd'
const NETWORK = '192.0.2.1'

const AGENTS = new UserAgentIndex([])
const HEADERS = new HeaderIndex([])
const PRINT: ConnectionPrint = {
  ja4: null,
  unresumed: null,
  pageWeight: null,
  stable: null,
  traits: null,
  ja4s: null,
  ja4x: null,
  http2: null,
  noHello: null,
  ja4Source: 'own',
}
const STACK: Stack = {
  number: 1,
  isKnown: true,
  kind: 'libraries',
  engines: new Set(),
  enginesAlike: new Set(),
  http2Engines: new Set(),
  shares: [],
  decided: [],
}

const CASES: readonly (readonly [what: string, asked: readonly Asked[], kinds: readonly EvidenceKind[]])[] = [
  ['nothing but a page', [['/']], []],
  ['robots.txt first', [['/robots.txt'], ['/']], ['robots-first']],
  ['robots.txt later', [['/'], ['/robots.txt']], []],
  ['a sitemap', [['/'], ['/sitemap.xml'], ['/']], ['asks-sitemap']],
  ['links of a page', [['/'], ['/b', ...REFERER], ['/c', ...REFERER], ['/d', ...REFERER]], ['crawls']],
  ['pages without a referer', [['/'], ['/b'], ['/c'], ['/d']], []],
  ['robots.txt is not a page', [['/robots.txt'], ['/b', ...REFERER], ['/c', ...REFERER]], ['robots-first']],
  ['a page and its parts', [['/'], ['/site.css', ...REFERER], ['/b', ...REFERER]], ['loads-parts']],
  [
    'links, and everything that belongs to them',
    [
      ['/b', ...REFERER],
      ['/c.js', ...REFERER],
      ['/d', ...REFERER],
      ['/e', ...REFERER],
    ],
    ['crawls', 'loads-parts'],
  ],
  [
    'what scripts ask for',
    [
      ['/a.png', ...OF_SCRIPT],
      ['/api/b', ...OF_SCRIPT],
    ],
    [],
  ],
  ['many pages', pages(30), ['asks-broadly', 'asks-fast']],
]

for (const [what, asked, kinds] of CASES)
  test(what, async () => {
    assert.deepEqual(shownBy(visitor(), asked), kinds)
  })

test('a connection on its own is a client of its own', async () => {
  assert.deepEqual(shownBy({ conduct: new Conduct(), isPerson: false }, pages(30)), [
    'asks-broadly',
    'asks-fast',
  ])
  assert.deepEqual(shownBy({ conduct: new Conduct(), isPerson: false }, [['/']]), [])
})

test('names no software before anything was read', async () => {
  assert.equal(new Conduct().agent, null)
})

test('what a client has shown on one connection is known on its next', async () => {
  const traffic = new Traffic()
  shownBy(visitor({ traffic }), [['/robots.txt']])
  for (const page of pages(30)) shownBy(visitor({ traffic }), [page])
  assert.deepEqual(shownBy(visitor({ traffic }), [['/']]), ['robots-first', 'asks-broadly', 'asks-fast'])
})

test('and not of others: of another address, another TLS, another program', async () => {
  const traffic = new Traffic()
  shownBy(visitor({ traffic }), pages(30))
  assert.deepEqual(shownBy(visitor({ traffic, network: '192.0.2.2' }), [['/']]), [])
  assert.deepEqual(shownBy(visitor({ traffic, hello: null }), [['/']]), [])
  assert.deepEqual(shownBy(visitor({ traffic, userAgent: 'thing/1.0' }), [['/']]), [])
})

test('without a hello, equal headers are one client', async () => {
  const traffic = new Traffic()
  shownBy(visitor({ traffic, hello: null }), pages(30))
  assert.deepEqual(shownBy(visitor({ traffic, hello: null }), [['/']]), ['asks-broadly', 'asks-fast'])
})

test('on connections that are open at once, all of them count', async () => {
  const traffic = new Traffic()
  const all = Array.from({ length: 6 }, () => visitor({ traffic }))
  let last: readonly string[] = []
  for (const [i, page] of pages(30).entries()) last = shownBy(all[i % all.length]!, [page])
  assert.deepEqual(last, ['asks-broadly', 'asks-fast'])
})

test('an office of people behind one address, who open many pages with what belongs to them', async () => {
  const traffic = new Traffic()
  for (let person = 0; person < 50; person++) {
    const visit = visitor({ traffic, isPerson: true })
    for (let page = 0; page < 4; page++) {
      const seen = shownBy(visit, [[`/page/${person}/${page}`, ...NAVIGATION, ...REFERER]])
      assert.deepEqual(
        seen.filter((kind) => kind !== 'loads-parts'),
        [],
        `${person} ${page}`,
      )
      shownBy(visit, [IMAGE])
    }
  }
})

test('a person whose browser has loaded on this connection what belongs to pages, however long ago', async () => {
  const visit = visitor({ traffic: new Traffic(), isPerson: true })
  shownBy(visit, [['/', ...NAVIGATION], IMAGE])
  const seen = shownBy(visit, pages(60, NAVIGATION), NOW_MS + 60 * 60_000)
  assert.deepEqual(seen, ['loads-parts'])
})

test('a person with everything in the cache, on pages with scripts', async () => {
  const traffic = new Traffic()
  const visit = visitor({ traffic, isPerson: true })
  for (const page of pages(60, NAVIGATION))
    assert.deepEqual(shownBy(visit, [page, ['/api/a', ...OF_SCRIPT]]), [])
})

test("a page's script that asks for much and often", async () => {
  const visit = visitor({ traffic: new Traffic(), isPerson: true })
  assert.deepEqual(shownBy(visit, pages(500, OF_SCRIPT)), [])
})

test('what a browser prefetches', async () => {
  const visit = visitor({ traffic: new Traffic(), isPerson: true })
  assert.deepEqual(shownBy(visit, pages(60, [...NAVIGATION, 'sec-purpose', 'prefetch'])), [])
})

test('a reader of feeds, and a monitor', async () => {
  const feeds = Array.from({ length: 100 }, (): Asked => ['/feed.xml', 'accept', 'application/rss+xml, */*'])
  const health = Array.from({ length: 100 }, (): Asked => ['/health'])
  assert.deepEqual(shownBy(visitor({ traffic: new Traffic() }), feeds), [])
  assert.deepEqual(shownBy(visitor({ traffic: new Traffic() }), health), [])
})

test('a person is not held to what a program does behind the same address by the same browser', async () => {
  const traffic = new Traffic()
  shownBy(visitor({ traffic, isPerson: true }), [
    ['/robots.txt'],
    ['/sitemap.xml'],
    ...pages(100, NAVIGATION),
  ])
  const person = visitor({ traffic, isPerson: true })
  assert.deepEqual(shownBy(person, [['/', ...NAVIGATION]]), [], 'the first page')
  assert.deepEqual(shownBy(person, [IMAGE]), ['loads-parts'])
  assert.deepEqual(shownBy(person, [['/next', ...NAVIGATION]]), ['loads-parts'])
  const another = visitor({ traffic, isPerson: true })
  assert.deepEqual(
    shownBy(another, [
      ['/', ...NAVIGATION],
      ['/next', ...NAVIGATION],
    ]),
    [],
    'parts were loaded there',
  )
})

test('a claimed browser that opens pages without their parts', async () => {
  const traffic = new Traffic()
  const seen = shownBy(visitor({ traffic, isPerson: true }), pages(60, NAVIGATION))
  assert.deepEqual(seen, ['asks-broadly', 'asks-fast'])
})

test('one unknown TLS from many addresses', async () => {
  const traffic = new Traffic()
  const swarm = (i: number, isStrange = true) =>
    visitor({ traffic, network: `198.51.100.${i}`, isStrange, isPerson: i % 2 === 0 })
  for (let i = 0; i < 90; i++) shownBy(swarm(i), [[`/page/${i}`]])
  assert.deepEqual(shownBy(swarm(100), [['/']]), ['asks-from-many'])
  assert.deepEqual(shownBy(swarm(101), [['/']]), ['asks-from-many'])
  assert.deepEqual(shownBy(swarm(102), [IMAGE]), ['loads-parts'], 'who loads what belongs to pages')
  assert.deepEqual(shownBy(swarm(103, false), [['/']]), [], 'whose TLS is known')
})

test('an unknown new version of a browser loads the parts of pages', async () => {
  const traffic = new Traffic()
  for (let i = 0; i < 90; i++)
    shownBy(visitor({ traffic, network: `198.51.100.${i}`, isStrange: true, isPerson: true }), [
      [`/page/${i}`, ...NAVIGATION],
      ...(i % 10 === 0 ? [IMAGE] : []),
    ])
  assert.deepEqual(shownBy(visitor({ traffic, isStrange: true, isPerson: true }), [['/']]), [])
})

test('an app that shows pages as a browser does, and says that it is another program', async () => {
  const traffic = new Traffic()
  const app = visitor({ traffic, userAgent: 'Shop/7.1' })
  for (const page of pages(60, NAVIGATION)) shownBy(app, [page, IMAGE])
  assert.deepEqual(shownBy(app, [['/']]), ['loads-parts'])
})

test('a known TLS says nothing about other clients with it', async () => {
  const traffic = new Traffic()
  for (let i = 0; i < 90; i++)
    shownBy(visitor({ traffic, network: `198.51.100.${i}`, isStrange: false }), [[`/page/${i}`]])
  assert.deepEqual(shownBy(visitor({ traffic, isStrange: false }), [['/']]), [])
})

interface Visitor {
  readonly conduct: Conduct
  readonly isPerson: boolean
  readonly claim?: Claim
  readonly print?: ConnectionPrint
  readonly stack?: Stack
}

interface Who {
  readonly traffic?: Traffic
  readonly network?: string
  readonly hello?: string | null
  readonly userAgent?: string | null
  /** With unknown TLS. */
  readonly isStrange?: boolean
  readonly isPerson?: boolean
}

/** A connection of a client. */
function visitor(who: Who = {}): Visitor {
  const { traffic = new Traffic(), network = NETWORK, hello = HELLO, isStrange = false } = who
  return {
    conduct: new Conduct(traffic, network),
    isPerson: who.isPerson ?? false,
    claim: AGENTS.claim(who.userAgent ?? null),
    print: { ...PRINT, stable: hello as StableKey | null },
    stack: { ...STACK, kind: isStrange ? 'unknown' : 'libraries', isKnown: !isStrange },
  }
}

/** What is known after the last of these requests, which come at once. */
function shownBy(visit: Visitor, asked: readonly Asked[], nowMs = NOW_MS): readonly EvidenceKind[] {
  const { conduct, isPerson, claim = AGENTS.claim(null), print = PRINT, stack = STACK } = visit
  const marks = new EvidenceSet()
  for (const [target, ...rawHeaders] of asked) {
    const head: RequestHead = { method: 'GET', target, version: '11', rawHeaders }
    const reading = new Reading()
    reading.read(head, HEADERS)
    conduct.note(head, reading, { claim, stack }, print, nowMs)
    marks.clear()
    marks.addAll(conduct.marks)
    conduct.markTraffic(marks, isPerson)
  }
  return marks.kinds()
}

function pages(count: number, headers: readonly string[] = []): readonly Asked[] {
  return Array.from({ length: count }, (_, i): Asked => [`/page/${i}`, ...headers])
}
