import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { classify } from '../../src/classify/verdict/classify.ts'
import { Conduct } from '../../src/classify/verdict/conduct.ts'
import { parseCorpusRow } from '../../src/classify/known/corpus.ts'
import type { Knowledge } from '../../src/classify/known/knowledge.ts'
import type { Claim } from '../../src/classify/known/user-agent.ts'
import { loadKnowledge } from '../../src/runtime/signatures/knowledge-files.ts'
import { type HelloTraits, TRAIT } from '../../src/fingerprint/hello-traits.ts'
import type { Ja4 } from '../../src/fingerprint/ja4.ts'
import type { Print } from '../../src/fingerprint/print.ts'

const knowledge = await loadKnowledge(null, null)

test("no person's browser is misclassified, whatever its version, also with unknown TLS", async () => {
  const samples = browserSamples()
  assert.ok(samples.length > 40)
  for (const [id, userAgent] of samples) {
    const claim = knowledge.userAgents.claim(userAgent)
    const rawHeaders = navigation(claim, userAgent)
    for (const ja4 of [null, 't13d1516h2_000000000001_000000000002' as Ja4]) {
      const head = { method: 'GET', target: '/', version: '20', rawHeaders } as const
      const { kind, evidence } = classify(knowledge, { print: print(ja4), head, conduct: new Conduct() })
      const found = evidence.map((each) => each.kind).join(' ')
      assert.ok(kind === 'human' || kind === 'unknown', `${id} is ${kind}: ${userAgent}: ${found}`)
    }
  }
})

test('a browser without a signature is not an agent, unless its TLS or its requests are those of a program', async () => {
  const userAgent = 'Mozilla/5.0 (SerenityOS; x86_64) LibWeb+LibJS/1.0 Browser/1.0'
  const ofBrowser = ['upgrade-insecure-requests', '1', 'sec-fetch-dest', 'document']
  const unknown = 't13d1516h2_000000000001_000000000002' as Ja4
  const token = ['authorization', 'Bearer x', 'x-stainless-lang', 'js']
  for (const [ja4, headers, kind] of [
    [null, ofBrowser, 'unknown'],
    [unknown, ofBrowser, 'unknown'],
    [NODE_JA4, ofBrowser, 'automation'],
    [unknown, token, 'agent'],
  ] as const) {
    const rawHeaders = [
      ':method',
      'GET',
      ':authority',
      'a.test',
      ':path',
      '/',
      'user-agent',
      userAgent,
      ...headers,
    ]
    const head = { method: 'GET', target: '/', version: '20', rawHeaders } as const
    const verdict = classify(knowledge, { print: print(ja4), head, conduct: new Conduct() })
    assert.equal(verdict.kind, kind, `${ja4} ${headers[0]}`)
  }
})

test('no person is misclassified because a company turns post-quantum keys off', async () => {
  const rows = readFileSync(new URL('recorded.jsonl', import.meta.url), 'utf8')
    .trimEnd()
    .split('\n')
  const people = rows
    .map((row) => parseCorpusRow(JSON.parse(row)))
    .filter(({ label, print }) => label === 'human-browser' && print.traits !== null)
  assert.ok(people.length >= 5)
  for (const { id, print: of, requests } of people) {
    const connection = { ...of, traits: (of.traits! & ~TRAIT.postQuantum) as HelloTraits }
    const conduct = new Conduct()
    for (const { head, ja4h } of requests) {
      const { kind } = classify(knowledge, { print: { connection, ja4h }, head, conduct })
      assert.ok(kind === 'human' || kind === 'unknown', `${id}: ${kind}`)
    }
  }
})

const CHROME =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36'
const NODE_JA4 = 't13d5212h1_b262b3658495_8e6e362c5eac' as Ja4

test("what a page's script sends says nothing of the browser, nor of the pages after it", async () => {
  const conduct = new Conduct()
  const own = ['x-stainless-lang', 'js', 'mcp-session-id', '1', 'authorization', 'Bearer x']
  const script = [
    ...[':method', 'POST', ':authority', 'shop.example.test', ':scheme', 'https', ':path', '/mcp', ...own],
    ...['sec-ch-ua', '"Not:A-Brand";v="8", "Chromium";v="156"', 'sec-ch-ua-platform', '"Linux"'],
    ...[
      'user-agent',
      CHROME,
      'accept',
      'application/json, text/event-stream',
      'sec-fetch-site',
      'same-origin',
    ],
    ...['sec-fetch-mode', 'cors', 'sec-fetch-dest', 'empty', 'accept-encoding', 'gzip, br'],
    ...['accept-language', 'en', 'priority', 'u=1, i'],
  ]
  const page = navigation(knowledge.userAgents.claim(CHROME), CHROME)
  for (const [target, rawHeaders] of [
    ['/mcp', script],
    ['/', page],
  ] as const) {
    const head = { method: target === '/' ? 'GET' : 'POST', target, version: '20', rawHeaders } as const
    const { kind, software, evidence } = classify(knowledge, { print: print(null), head, conduct })
    const found = evidence.map((each) => each.kind)
    assert.ok(kind === 'human' || kind === 'unknown', `${kind}: ${found}`)
    assert.equal(software?.kind, 'browser')
    assert.ok(!found.includes('agent-header') && !found.includes('mcp-request'))
  }
})

test('a header about an upgrade or a WebView excuses no mark', async () => {
  const view = CHROME.replace('X11; Linux x86_64', 'Linux; Android 15; Pixel 9 Build/X; wv')
  for (const [userAgent, more] of [
    [CHROME, ['Upgrade', 'websocket']],
    [CHROME, []],
    [view, []],
  ] as const) {
    const rawHeaders = ['Host', 'shop.example.test', 'User-Agent', userAgent, 'Accept', '*/*', ...more]
    const head = { method: 'GET', target: '/', version: '11', rawHeaders } as const
    const verdict = classify(knowledge, { print: print(NODE_JA4), head, conduct: new Conduct() })
    assert.ok(verdict.kind === 'agent' || verdict.kind === 'automation', userAgent)
    assert.equal(verdict.evidence[0]!.kind, 'spoofed-browser')
  }
})

/** One or two User-Agents of each browser. */
function browserSamples(): readonly (readonly [string, string])[] {
  const file = new URL('user-agents.json', import.meta.url)
  const all: [string, string][] = JSON.parse(readFileSync(file, 'utf8'))
  return all.filter(([id]) => isBrowser(knowledge, id))
}

function isBrowser({ list }: Knowledge, id: string): boolean {
  return list.find((software) => software.id === id)?.kind === 'browser'
}

/** A page typed into the address line, as each engine asks for it over HTTP/2. */
function navigation(claim: Claim, userAgent: string): string[] {
  switch (claim.engine) {
    case 'blink': {
      const { version } = claim
      const brands = `"${greaseBrand(version)}";v="${['8', '99', '24'][version % 3]}", "Chromium";v="${version}"`
      const hints = ['sec-ch-ua', brands, 'sec-ch-ua-mobile', claim.isMobile ? '?1' : '?0']
      return [
        ...[':method', 'GET', ':authority', 'shop.example.test', ':scheme', 'https', ':path', '/'],
        ...(version >= 90 && !claim.isEmbedded ? [...hints, 'sec-ch-ua-platform', platform(claim)] : []),
        ...['upgrade-insecure-requests', '1', 'user-agent', userAgent, 'accept', 'text/html,*/*;q=0.8'],
        ...['sec-fetch-site', 'none', 'sec-fetch-mode', 'navigate', 'sec-fetch-user', '?1'],
        ...['sec-fetch-dest', 'document', 'accept-encoding', 'gzip, deflate, br', 'accept-language', 'en'],
        ...(version >= 125 ? ['priority', 'u=0, i'] : []),
      ]
    }
    case 'gecko':
      return [
        ...[':method', 'GET', ':path', '/', ':authority', 'shop.example.test', ':scheme', 'https'],
        ...['user-agent', userAgent, 'accept', 'text/html', 'accept-language', 'en'],
        ...['accept-encoding', 'gzip, deflate, br, zstd', 'upgrade-insecure-requests', '1'],
        ...['sec-fetch-dest', 'document', 'sec-fetch-mode', 'navigate', 'sec-fetch-site', 'none'],
        ...['sec-fetch-user', '?1', 'priority', 'u=0, i', 'te', 'trailers'],
      ]
    case 'webkit':
      return [
        ...[':method', 'GET', ':scheme', 'https', ':authority', 'shop.example.test', ':path', '/'],
        ...['sec-fetch-dest', 'document', 'user-agent', userAgent, 'accept', 'text/html'],
        ...['sec-fetch-site', 'none', 'sec-fetch-mode', 'navigate', 'accept-language', 'en'],
        ...['priority', 'u=0, i', 'accept-encoding', 'gzip, deflate, br'],
      ]
    default:
      return [':method', 'GET', ':path', '/', 'user-agent', userAgent, 'accept', '*/*']
  }
}

/** User-Agent Client Hints: the placeholder brand depends on the version. */
function greaseBrand(version: number): string {
  const characters = [' ', '(', ':', '-', '.', '/', ')', ';', '=', '?', '_']
  return `Not${characters[version % 11]}A${characters[(version + 1) % 11]}Brand`
}

function platform(claim: Claim): string {
  const names = { windows: 'Windows', mac: 'macOS', android: 'Android', chromeos: 'Chrome OS', ios: 'iOS' }
  return `"${claim.platform === null || claim.platform === 'linux' ? 'Linux' : names[claim.platform]}"`
}

/** Of a hello of which no more is known. */
function print(ja4: Ja4 | null): Print {
  const connection = {
    ja4,
    unresumed: null,
    pageWeight: null,
    stable: null,
    traits: null,
    ja4s: null,
    ja4x: null,
    http2: null,
    noHello: null,
    ja4Source: 'own',
  } as const
  return { connection, ja4h: null }
}

test("a browser's own header names the browser, not a tool", async () => {
  const rawHeaders = navigation(knowledge.userAgents.claim(CHROME), CHROME)
  const at = rawHeaders.indexOf('sec-ch-ua')
  const brave = rawHeaders.with(
    at + 1,
    rawHeaders[at + 1]!.replace(/"Chromium"/, '"Brave";v="156", "Chromium"'),
  )
  assert.match(brave[at + 1]!, /"Brave"/)
  const conduct = new Conduct()
  for (const [headers, id] of [
    [brave, 'brave'],
    [rawHeaders, 'chrome'],
    [brave, 'brave'],
  ] as const) {
    const head = { method: 'GET', target: '/', version: '20', rawHeaders: headers } as const
    const { kind, software, evidence } = classify(knowledge, { print: print(null), head, conduct })
    assert.ok(kind === 'human' || kind === 'unknown')
    assert.equal(software?.id, id)
    assert.ok(!evidence.some((each) => each.kind === 'tool-header'))
  }
})

test('a web view is held to the TLS of its system', async () => {
  const views = [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148',
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)',
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)',
  ]
  for (const view of views) {
    const rawHeaders = navigation(knowledge.userAgents.claim(view), view)
    const head = { method: 'GET', target: '/', version: '20', rawHeaders } as const
    const kindWith = (ja4: Ja4 | null) =>
      classify(knowledge, { print: print(ja4), head, conduct: new Conduct() }).kind
    assert.ok(
      ['agent', 'automation', 'unknown'].includes(kindWith(NODE_JA4)),
      `${view}: ${kindWith(NODE_JA4)}`,
    )
    assert.equal(kindWith('t13d1516h2_000000000001_000000000002' as Ja4), 'unknown', view)
    assert.equal(kindWith(null), 'human', view)
  }
})

test('without a User-Agent, the TLS of a browser excuses only what a browser sends', async () => {
  const chromium = 't13d1517h2_8daaf6152771_cb7bf5808d99' as Ja4
  const page = navigation(knowledge.userAgents.claim(CHROME), CHROME)
  const at = page.indexOf('user-agent')
  const silent = [...page.slice(0, at), ...page.slice(at + 2)]
  const token = [...silent, 'authorization', 'Bearer x']
  for (const [method, target, rawHeaders, isFlagged] of [
    ['GET', '/', silent, false],
    ['GET', '/', token, true],
    ['POST', '/api', [...silent, 'content-type', 'application/json'], true],
    ['POST', '/v1/chat/completions', silent, true],
  ] as const) {
    const head = { method, target, version: '20', rawHeaders } as const
    const { kind } = classify(knowledge, { print: print(chromium), head, conduct: new Conduct() })
    assert.equal(kind === 'agent' || kind === 'automation', isFlagged, `${method} ${target}: ${kind}`)
  }
})
