import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { classify } from '../../src/classify/verdict/classify.ts'
import { Conduct } from '../../src/classify/verdict/conduct.ts'
import { type CorpusRow, parseCorpusRow } from '../../src/classify/known/corpus.ts'
import { Traffic } from '../../src/classify/verdict/traffic.ts'
import type { Verdict } from '../../src/classify/verdict/verdict.ts'
import { loadKnowledge } from '../../src/runtime/signatures/knowledge-files.ts'
import type { Ja4 } from '../../src/fingerprint/ja4.ts'
import { ja4h } from '../../src/fingerprint/ja4plus/ja4h.ts'
import type { ConnectionPrint } from '../../src/fingerprint/print.ts'
import type { StableKey } from '../../src/fingerprint/stable-key.ts'
import type { RequestHead } from '../../src/wire/request-head.ts'

const KNOWLEDGE = await loadKnowledge(null, null)
const NOW_MS = 1_800_000_000_000
const NETWORK = '192.0.2.1'
const ROWS: readonly CorpusRow[] = readFileSync('test/classify/recorded.jsonl', 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => parseCorpusRow(JSON.parse(line)))
const LIBRARY = ROWS.find(({ client }) => client === 'python-requests')!
/** Of a program with unknown TLS. */
const STRANGE: ConnectionPrint = {
  ...LIBRARY.print,
  ja4: 't13d0707h2_000000000001_000000000002' as Ja4,
  stable: 'gs1-t13d0707h2-000000000001-000000000002' as StableKey,
}
/** But for jsdom, which accepts pages as browsers do. */
const TOOLS = ROWS.filter(
  ({ label, client, requests }) =>
    label === 'http-library' && client !== 'jsdom' && requests.some(({ head }) => head.method === 'GET'),
)
/** Connections that begin with a page: others carry only its resources. */
const PEOPLE = ROWS.filter(({ label, requests }) => {
  const first = requests.find(({ head }) => head.method === 'GET')
  const accept = first?.head.rawHeaders.find((text) => text.startsWith('text/html'))
  return label === 'human-browser' && accept !== undefined
})

test('a person is not affected by a program with the same browser at the same address', async () => {
  for (const row of PEOPLE) {
    const traffic = new Traffic()
    crawlAs(row, traffic)
    assert.deepEqual(judged(row, new Conduct(traffic, NETWORK)), judged(row, new Conduct()), row.id)
  }
})

test('many requests alone do not make a claimed browser a program', async () => {
  for (const row of PEOPLE) {
    const { kind, evidence } = crawlAs(row, new Traffic())
    assert.ok(kind === 'human' || kind === 'unknown', `${row.id}: ${kind}`)
    // A weight is towards the likeliest class, which is not a person's if the verdict is unknown.
    const isAgainst = (weight: number) => kind === 'unknown' || weight < 0
    assert.ok(
      evidence.some((each) => each.kind === 'asks-broadly' && isAgainst(each.weight)),
      row.id,
    )
  }
})

test('an unknown library is an agent by its conduct', async () => {
  const row = LIBRARY
  const conduct = new Conduct(new Traffic(), NETWORK)
  assert.equal(judge(row, conduct, '/', []).kind, 'automation')
  assert.equal(judge(row, conduct, '/b', []).kind, 'automation')
  for (let i = 0; i < 40; i++) judge(row, conduct, `/page/${i}`, ['Referer', 'https://a.test/'])
  assert.equal(judge(row, conduct, '/c', []).kind, 'agent')
})

test('a library or tool is not an agent because it reads a sitemap', async () => {
  assert.ok(TOOLS.length > 30)
  for (const row of TOOLS) {
    for (const print of [row.print, { ...row.print, ja4: STRANGE.ja4, stable: STRANGE.stable }]) {
      const { kind } = judge({ ...row, print }, new Conduct(), '/sitemap.xml', [])
      assert.equal(kind, 'automation', `${row.id} ${row.client}`)
    }
  }
})

test('but is one if it has asked for robots.txt first', async () => {
  for (const row of TOOLS) {
    const traffic = new Traffic()
    judge(row, new Conduct(traffic, NETWORK), '/robots.txt', [])
    assert.equal(judge(row, new Conduct(traffic, NETWORK), '/sitemap.xml', []).kind, 'agent', row.client)
  }
})

test('a tool that follows links and loads what they need is one that copies pages for its user', async () => {
  const headers = ['User-Agent', 'Wget/1.21.3', 'Accept', '*/*', 'Referer', 'https://a.test/']
  const after = (...targets: readonly string[]) => {
    const conduct = new Conduct(new Traffic(), NETWORK)
    return targets.map((target) => say(LIBRARY.print, target, headers, conduct)).at(-1)!.kind
  }
  const pages = Array.from({ length: 60 }, (_, i) => `/page/${i}`)
  assert.equal(after(...pages), 'agent')
  assert.equal(after('/site.css', ...pages.slice(0, 19)), 'automation')
  assert.equal(after('/robots.txt', '/site.css', '/sitemap.xml', ...pages.slice(0, 9)), 'automation')
  assert.equal(after('/site.css', ...pages), 'agent', 'a single part does not hide a crawl')
})

test('a person who reads with a text browser crawls not', async () => {
  const conduct = new Conduct(new Traffic(), NETWORK)
  for (let i = 0; i < 60; i++) {
    const headers = ['User-Agent', 'Lynx/2.9.0', 'Accept', 'text/html', 'Referer', 'https://a.test/']
    const verdict = say(LIBRARY.print, `/page/${i}`, headers, conduct, NOW_MS + i * 5000)
    assert.equal(verdict.kind, 'automation')
  }
})

test('an app of its own makers is not an agent, however active its users are', async () => {
  const traffic = new Traffic()
  let last: Verdict | null = null
  for (let user = 0; user < 60; user++) {
    const conduct = new Conduct(traffic, `198.51.100.${user}`)
    for (let i = 0; i < 40; i++) {
      const path = `/items/${user * 7 + i}`
      last = say(STRANGE, path, ['User-Agent', 'Shop/3.1 (build 7)', 'Accept', '*/*'], conduct)
      assert.equal(last.kind, 'automation', `${user} ${i}`)
    }
  }
  const shown = new Set(last!.evidence.map(({ kind }) => kind))
  for (const kind of ['asks-broadly', 'asks-fast', 'asks-from-many']) assert.ok(shown.has(kind), kind)
})

/** As this client opens its first page, with the TLS it has, but many and nothing else. */
function crawlAs(row: CorpusRow, traffic: Traffic): Verdict {
  const conduct = new Conduct(traffic, NETWORK)
  judge(row, conduct, '/robots.txt', [])
  for (let i = 0; i < 100; i++) judge(row, conduct, `/page/${i}`, [])
  return judge(row, conduct, '/last', [])
}

function judged(row: CorpusRow, conduct: Conduct): readonly Verdict[] {
  return row.requests.map(({ head, ja4h }) =>
    classify(KNOWLEDGE, { print: { connection: row.print, ja4h }, head, conduct, nowMs: NOW_MS }),
  )
}

function judge(row: CorpusRow, conduct: Conduct, target: string, more: readonly string[]): Verdict {
  const { rawHeaders } = row.requests.find(({ head }) => head.method === 'GET')!.head
  return say(row.print, target, [...rawHeaders, ...more], conduct)
}

function say(
  print: ConnectionPrint,
  target: string,
  rawHeaders: readonly string[],
  conduct: Conduct,
  nowMs = NOW_MS,
): Verdict {
  const version = print.http2 === null ? '11' : '20'
  const head: RequestHead = { method: 'GET', target, version, rawHeaders }
  return classify(KNOWLEDGE, { print: { connection: print, ja4h: ja4h(head) }, head, conduct, nowMs })
}
