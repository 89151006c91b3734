import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { test } from 'tap'
import type { Signature } from '../../src/classify/signature.ts'
import { parseSoftwareList, type Software } from '../../src/classify/software.ts'
import { UserAgentIndex } from '../../src/classify/user-agent.ts'
import { placed, readSource } from '../../src/config-source.ts'

const folder = new URL('../../signatures/', import.meta.url)
const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'))
const lists = new Map(files.map((name) => [name, parse(readFileSync(new URL(name, folder), 'utf8'), name)]))
const all = [...lists.values()].flat()
const readme = readFileSync(new URL('README.md', folder), 'utf8')
const samples: readonly (readonly [string, string])[] = JSON.parse(
  readFileSync(new URL('user-agents.json', import.meta.url), 'utf8'),
)

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
  for (const { id, signatures, verification } of all) {
    const ranges = verification.ranges === null ? [] : [verification.ranges]
    for (const { source, date } of [...signatures, ...ranges]) {
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

test('address ranges are ranges of addresses', async () => {
  for (const { id, verification } of all) {
    for (const prefix of verification.ranges?.prefixes ?? []) {
      const [address = '', bits] = prefix.split('/')
      const version = isIP(address)
      assert.notEqual(version, 0, `${id}: ${prefix}`)
      if (bits !== undefined) assert.ok(Number(bits) <= (version === 4 ? 32 : 128), `${id}: ${prefix}`)
    }
  }
})

test('a whole User-Agent names the entry it is of, and no other comes before it', async () => {
  const index = new UserAgentIndex(all)
  const wrong = samples
    .map(([id, text]) => [id, index.claim(text).software?.id ?? 'nobody', text])
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

test('the families are those that README.md lists', async () => {
  const listed = [...readme.matchAll(/^\| `([a-z-]+\.yaml)` \|/gm)].map(([, name]) => name!)
  assert.deepEqual(listed.toSorted(), files.toSorted())
})

test('the example of README.md can be read', async () => {
  const example = /```yaml\n(.*?)```/s.exec(readme)?.[1] ?? ''
  const [bot, browser] = parse(example, 'README.md')
  assert.equal(bot?.kind, 'agent')
  assert.equal(bot?.signatures.length, 5)
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
}
