import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'tap'
import type { Signature } from '../../src/classify/known/signature.ts'
import { HeaderIndex } from '../../src/classify/known/index/header-index.ts'
import { HeaderOrders } from '../../src/classify/known/header-orders.ts'
import { Reading } from '../../src/classify/verdict/reading.ts'
import { type Engine, parseSoftwareList, type Software } from '../../src/classify/known/software.ts'
import { UserAgentIndex } from '../../src/classify/known/user-agent.ts'
import { placed, readSource } from '../../src/config/source.ts'

const folder = new URL('../../signatures/', import.meta.url)
const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'))
const lists = new Map(files.map((name) => [name, parse(readFileSync(new URL(name, folder), 'utf8'), name)]))
const all = [...lists.values()].flat()
const readme = readFileSync(new URL('README.md', folder), 'utf8')
const samples: readonly (readonly [string, string])[] = JSON.parse(
  readFileSync(new URL('user-agents.json', import.meta.url), 'utf8'),
)
const recorded: readonly { readonly client: string; readonly label: string }[] = readFileSync(
  new URL('recorded.jsonl', import.meta.url),
  'utf8',
)
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line))

test('there are as many entries as one expects, of each kind', async () => {
  const count = (kind: string) => all.filter((software) => software.kind === kind).length
  assert.ok(count('agent') >= 1400, `${count('agent')} agents`)
  assert.ok(count('tool') >= 110, `${count('tool')} tools`)
  assert.ok(count('browser') >= 70, `${count('browser')} browsers`)
})

test('no two entries share an id or an alias', async () => {
  assert.deepEqual(doubles(all.flatMap(({ id, aliases }) => [id, ...aliases])), [])
})

test('the entries of a file are in the order of their ids', async () => {
  for (const [name, list] of lists) {
    const ids = list.map(({ id }) => id)
    assert.deepEqual(ids, ids.toSorted(), name)
  }
})

test('each entry has a way to be known', async () => {
  const unknowable = all.filter(
    ({ signatures, robotsToken, verification }) =>
      signatures.length === 0 &&
      robotsToken === null &&
      verification.ranges === null &&
      verification.rangesUrl === null &&
      verification.reverseDns.length === 0 &&
      verification.signatureAgent === null,
  )
  assert.deepEqual(idsOf(unknowable), [])
})

test('each signature says where it comes from, and on what day', async () => {
  for (const { id, signatures, verification, purposeSources } of all) {
    const ranges = verification.ranges === null ? [] : [verification.ranges]
    for (const { source, date } of [...signatures, ...ranges, ...purposeSources]) {
      assert.equal(source, source.trim(), id)
      assert.ok(source.length >= 5, `${id}: ${source}`)
      assert.equal(new Date(date).toISOString().slice(0, 10), date, id)
    }
  }
})

test('no entry has a thing from one source twice, and no word or header is two entries’', async () => {
  for (const { id, signatures } of all)
    assert.deepEqual(doubles(signatures.map((each) => `${patternOf(each)} (${each.source})`)), [], id)
  const own = all.flatMap(({ signatures }) => [
    ...new Set(signatures.filter(({ type }) => type === 'user-agent' || type === 'header').map(patternOf)),
  ])
  assert.deepEqual(doubles(own), [])
})

test('a JA4H says nothing of cookies', async () => {
  for (const { id, signatures } of all)
    for (const signature of signatures)
      if (signature.type === 'ja4h') assert.match(signature.value, /_\*_\*$/, id)
})

test('a list of addresses that several have stands with one of them', async () => {
  const withList = all.filter(({ verification }) => verification.ranges !== null)
  assert.ok(withList.length >= 25, `${withList.length}`)
  assert.deepEqual(doubles(withList.flatMap(({ verification }) => verification.rangesUrl ?? [])), [])
})

test('a whole User-Agent names the entry it is of, and no other comes before it', async () => {
  const index = new UserAgentIndex(all)
  const wrong = samples
    .map(([id, text]) => [id, index.claim(text).software?.id ?? 'none', text])
    .filter(([id, named]) => id !== named)
  assert.deepEqual(wrong, [])
})

test('most entries with a word have a whole User-Agent to try it on', async () => {
  const sampled = new Set(samples.map(([id]) => id))
  const known = new Set(idsOf(all))
  assert.deepEqual(
    [...sampled].filter((id) => !known.has(id)),
    [],
  )
  assert.ok(sampled.size >= 1300, `${sampled.size}`)
})

test('no word of an agent or tool stands in the User-Agent of a browser', async () => {
  const index = new UserAgentIndex(all)
  const browsers = new Set(idsOf(all.filter(({ kind }) => kind === 'browser')))
  const ofBrowsers = samples.filter(([id]) => browsers.has(id))
  assert.ok(ofBrowsers.length >= 40)
  const found = ofBrowsers.flatMap(([, text]) =>
    index.matches(text).filter(({ software }) => software.kind !== 'browser'),
  )
  assert.deepEqual(found, [])
})

test('the names that labelled traffic has stand for the software that was recorded', async () => {
  const byName = new Map(
    all.flatMap((software) => [software.id, ...software.aliases].map((name) => [name, software.id])),
  )
  for (const [name, id] of Object.entries(RECORDED)) assert.equal(byName.get(name), id, name)
})

test('recordings of imitators and driven browsers are not classified as other software', async () => {
  const byName = new Map(
    all.flatMap((software) => [software.id, ...software.aliases].map((name) => [name, software])),
  )
  const rows = recorded.filter(({ label }) => label === 'spoofed-browser' || label === 'browser-agent')
  assert.ok(rows.length >= 25, `${rows.length}`)
  for (const { client, label } of rows) {
    const software = byName.get(client)
    // Clients of no software have no signatures.
    if (software === undefined) continue
    if (label === 'spoofed-browser') assert.ok(software.isImitator, client)
    else assert.equal(software.category, 'browser-agent', client)
  }
})

test('browsers send their headers in an order that is known, and imitators are still seen by theirs', async () => {
  const headers = new HeaderIndex(all)
  const orders = new HeaderOrders(all)
  const reading = new Reading()
  for (const [engine, protocol, names, agrees] of ORDERS) {
    const rawHeaders = names.split(' ').flatMap((name) => [name, 'x'])
    const version = protocol === 'h2' ? '20' : '11'
    reading.read({ method: 'GET', target: '/', version, rawHeaders }, headers)
    assert.equal(orders.compare(engine, protocol, reading), agrees, names)
  }
})

test('the agents that are blocked or allowed most often have their published purpose', async () => {
  const expected = {
    training: ['gptbot', 'claudebot', 'ccbot', 'bytespider', 'meta-externalagent', 'google-extended'],
    search: ['googlebot', 'bingbot', 'oai-searchbot', 'perplexitybot', 'claude-searchbot'],
    assistant: ['chatgpt-user', 'claude-user', 'perplexity-user', 'duckassistbot', 'meta-externalfetcher'],
    agent: ['chatgpt-agent', 'google-agent', 'claude-code', 'cursor', 'langchain-python'],
    archive: ['ccbot', 'ia-archiver'],
    monitor: ['pingdom', 'uptimerobot'],
    preview: ['slackbot', 'facebookexternalhit'],
    seo: ['ahrefsbot', 'dotbot'],
    security: ['censys', 'shodan'],
  }
  const wrong = Object.entries(expected).flatMap(([purpose, ids]) =>
    ids.filter((id) => !all.find((each) => each.id === id)?.purposes.some((each) => each === purpose)),
  )
  assert.deepEqual(wrong, [])
  assert.ok(all.filter(({ purposes }) => purposes.length > 0).length >= 850)
})

test('an agent that trains a model and one that answers a person are told apart', async () => {
  const both = all.filter(({ purposes }) => purposes.includes('training') && purposes.includes('assistant'))
  assert.deepEqual(idsOf(both), [])
})

test('only a file with one purpose gives it to its agents without another source', async () => {
  const ofFamily = /^family (\S+)$/
  const purposeOf = {
    'archives.yaml': 'archive',
    'coding-agents.yaml': 'agent',
    'monitors.yaml': 'monitor',
    'orchestrators.yaml': 'agent',
    'previews.yaml': 'preview',
    'search-crawlers.yaml': 'search',
    'security-scanners.yaml': 'security',
    'seo-crawlers.yaml': 'seo',
  }
  const given = [...lists].flatMap(([name, list]) =>
    list.flatMap(({ id, purposes, purposeSources }) =>
      purposeSources.flatMap(({ source }, i) => {
        const family = ofFamily.exec(source)?.[1]
        return family === undefined ? [] : { id, name, family, purpose: purposes[i]! }
      }),
    ),
  )
  assert.ok(given.length >= 200, `${given.length}`)
  assert.deepEqual(
    given.filter(
      ({ name, family, purpose }) => family !== name || purposeOf[name as keyof typeof purposeOf] !== purpose,
    ),
    [],
  )
})

test('the families are those that README.md lists', async () => {
  const listed = [...readme.matchAll(/^\| `([a-z-]+\.yaml)` \|/gm)].map(([, name]) => name!)
  assert.deepEqual(listed.toSorted(), files.toSorted())
})

test('the example of README.md can be read', async () => {
  const example = /```yaml\n(.*?)```/s.exec(readme)?.[1] ?? ''
  const [bot, browser] = parse(example, 'README.md')
  assert.equal(bot?.kind, 'agent')
  assert.equal(bot?.signatures.length, 5)
  assert.deepEqual(bot?.purposes, ['search', 'training'])
  assert.deepEqual(bot?.verification.ranges?.prefixes, ['192.0.2.0/24', '2001:db8::/32'])
  assert.equal(browser?.givesWay, 1)
})

function parse(text: string, name: string): readonly Software[] {
  const source = readSource(text, name)
  return placed(source, () => parseSoftwareList(source.value))
}

function idsOf(list: readonly Software[]): readonly string[] {
  return list.map(({ id }) => id)
}

function doubles(texts: readonly string[]): readonly string[] {
  const seen = new Set<string>()
  return texts.filter((text) => seen.has(text) || !seen.add(text))
}

function patternOf(signature: Signature): string {
  switch (signature.type) {
    case 'user-agent':
      return `user-agent ${signature.text}`
    case 'header':
      return `header ${signature.name}: ${signature.value}`
    case 'header-order':
      return `${signature.protocol} ${signature.names}`
    default:
      return `${signature.type} ${signature.value}`
  }
}

/** Some of the names of the recorded clients: those that are not just the id. */
const RECORDED = {
  openai: 'openai-sdk-js',
  anthropic: 'anthropic-sdk-js',
  'google-genai': 'google-genai-sdk',
  'synthetic-openai-python': 'openai-sdk-python',
  'mcp-sdk': 'mcp-client',
  'mcp-client-v2': 'mcp-client',
  'a2a-sdk': 'a2a-client',
  'vercel-ai-openai-compatible': 'vercel-ai-sdk',
  'langchain-openai': 'langchain-js',
  llamaindex: 'llamaindex-js',
  'claude-code-cli': 'claude-code',
  'opencode-cli': 'opencode',
  fetch: 'node-fetch-builtin',
  'node-https': 'node-http',
  chromium: 'chrome',
  'firefox-esr': 'firefox',
  'playwright-headed': 'playwright',
  'crawlee-cheerio': 'crawlee',
  'perl-robotua': 'lwp-robotua',
  '@ai-sdk/openai': 'vercel-ai-sdk',
  '@ai-sdk/mcp': 'ai-sdk-mcp',
  '@anthropic-ai/sdk': 'anthropic-sdk-js',
  '@google/genai': 'google-genai-sdk',
  '@langchain/openai': 'langchain-js',
  '@mistralai/mistralai': 'mistral-sdk-js',
  '@modelcontextprotocol/sdk': 'mcp-client',
  '@openai/agents': 'openai-agents-sdk',
  'cohere-ai': 'cohere-sdk-js',
  'groq-sdk': 'groq-sdk-js',
  'portkey-ai': 'portkey',
  voyageai: 'voyageai-sdk-js',
  'playwright-core': 'playwright',
  'puppeteer-core': 'puppeteer',
  '@crawlee/cheerio': 'crawlee',
  'wreq-js': 'wreq',
  urllib: 'node-urllib',
}

/** As Chromium 156 sent them, or a recorded imitator. */
const TAIL = 'sec-fetch-site sec-fetch-mode sec-fetch-dest referer accept-encoding accept-language cookie'
const ORDERS: readonly (readonly [Engine, 'h1' | 'h2', string, 'agrees' | 'disagrees' | 'unknown'])[] = [
  // A font and a module script, and fetch where the page sets Accept: of what stands first no order is known.
  [
    'blink',
    'h2',
    `origin sec-ch-ua-platform user-agent sec-ch-ua sec-ch-ua-mobile accept ${TAIL} priority`,
    'unknown',
  ],
  [
    'blink',
    'h1',
    `host connection origin sec-ch-ua-platform user-agent sec-ch-ua sec-ch-ua-mobile accept ${TAIL}`,
    'unknown',
  ],
  [
    'blink',
    'h2',
    `sec-ch-ua-platform user-agent accept sec-ch-ua content-type sec-ch-ua-mobile ${TAIL} priority`,
    'unknown',
  ],
  [
    'blink',
    'h2',
    `content-length sec-ch-ua accept content-type sec-ch-ua-mobile user-agent origin ${TAIL}`,
    'unknown',
  ],
  [
    'blink',
    'h2',
    'accept origin user-agent sec-fetch-mode sec-fetch-site sec-fetch-dest referer accept-encoding',
    'agrees',
  ],
  // In order with one that does not know accept-language: a driven Chromium.
  [
    'blink',
    'h2',
    `sec-ch-ua upgrade-insecure-requests user-agent accept-language accept sec-fetch-site sec-fetch-mode sec-fetch-user`,
    'unknown',
  ],
  // A page does not go by what holds for these.
  ['blink', 'h2', `user-agent accept upgrade-insecure-requests sec-ch-ua ${TAIL}`, 'disagrees'],
  ['blink', 'h2', `accept-language accept sec-ch-ua upgrade-insecure-requests ${TAIL}`, 'disagrees'],
  [
    'blink',
    'h2',
    'sec-ch-ua user-agent sec-fetch-dest sec-fetch-mode sec-fetch-site accept accept-encoding',
    'disagrees',
  ],
  [
    'gecko',
    'h1',
    'Host User-Agent Accept Accept-Language Accept-Encoding Referer Origin Connection Cookie',
    'agrees',
  ],
  [
    'gecko',
    'h2',
    'user-agent accept accept-language accept-encoding sec-fetch-dest upgrade-insecure-requests',
    'disagrees',
  ],
  [
    'webkit',
    'h2',
    'accept sec-fetch-site sec-fetch-dest accept-language sec-fetch-mode user-agent referer',
    'agrees',
  ],
]
