import assert from 'node:assert/strict'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import { parseSoftwareList } from '../../src/classify/known/software.ts'
import { type Claim, UserAgentIndex } from '../../src/classify/known/user-agent.ts'

const SOURCE = { source: 'made up', date: '2026-11-21' }
const CHROME =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36'
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0'
const SAFARI =
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15'

test('a word does not begin in the middle of another, and ends none in its middle', async () => {
  const index = indexOf({ id: 'curl', words: ['curl/'] }, { id: 'nutch', words: ['Nutch'] })
  for (const [text, id] of [
    ['curl/8.5.0', 'curl'],
    ['CURL/8.5.0', 'curl'],
    ['git/2.39 (curl/8.5.0)', 'curl'],
    ['x-curl/8', 'curl'],
    ['libcurl/8.5.0', null],
    ['2curl/8.5.0', null],
    ['curl 8.5.0', null],
    ['curl', null],
    ['Nutch', 'nutch'],
    ['Nutch-1.2', 'nutch'],
    ['my_nutch;', 'nutch'],
    ['Nutches', null],
    ['Nutch2', null],
    ['éNutch', 'nutch'],
  ] as const)
    assert.equal(nameIn(index, text), id, text)
})

test('a word may begin with signs, which have to be there', async () => {
  const index = indexOf(
    { id: 'webview', words: ['; wv)'] },
    { id: 'app', words: ['[FB_IAB/'] },
    { id: 'sdk', words: ['@openrouter/sdk'] },
  )
  for (const [text, id] of [
    ['Mozilla/5.0 (Linux; Android 14; Pixel 8; wv) AppleWebKit', 'webview'],
    ['Mozilla/5.0 (Linux wv) AppleWebKit', null],
    ['wv)', null],
    ['Mozilla/5.0 [FB_IAB/FB4A]', 'app'],
    ['FB_IAB/FB4A', null],
    ['speakeasy 1.3.19 @openrouter/sdk', 'sdk'],
    ['openrouter/sdk', null],
  ] as const)
    assert.equal(nameIn(index, text), id, text)
})

test('where no word is found, the first product may have the name of a program', async () => {
  const index = indexOf(
    { id: 'acme-kit', words: ['Kit of Acme/'] },
    { id: 'curl', words: ['curl/'] },
    { id: 'acme-browser', kind: 'browser', words: ['AcmeB/'] },
  )
  for (const [text, id] of [
    ['acme-kit/1.0', 'acme-kit'],
    ['Acme_Kit/1.0 node/24 (linux)', 'acme-kit'],
    ['acme-kit', 'acme-kit'],
    ['acme-kit 1.0', null],
    ['acme-kits/1.0', null],
    ['other/1.0 acme-kit/1.0', null],
    ['(acme-kit/1.0)', null],
    ['acme-browser/1.0', null],
    // Something is named.
    ['acme-kit/1.0 curl/8.0', null],
    ['', null],
    ['/', null],
  ] as const) {
    const { called, software } = index.claim(text)
    assert.equal(called?.id ?? null, id, text)
    assert.ok(called === null || software === null, text)
  }
})

test('a bot that embeds a browser is called by its own name', async () => {
  const index = indexOf(
    { id: 'foobot', kind: 'agent', words: ['Bot of Foo'] },
    { id: 'acme', kind: 'agent', words: ['Kit of Acme'] },
    { id: 'chrome', kind: 'browser', words: ['Chrome/'] },
  )
  for (const [text, id] of [
    ['Mozilla/5.0 (X11) Chrome/156.0 (compatible; FooBot/1.0)', 'foobot'],
    ['Mozilla/5.0 (X11) Chrome/156.0 FooBot', 'foobot'],
    ['Mozilla/5.0 (X11) Chrome/156.0 OtherBot/1.0', null],
    // A name that other programs have, too.
    ['Mozilla/5.0 (X11) Chrome/156.0 acme/1.0 OtherBot/1.0', null],
  ] as const) {
    const { called, kind } = index.claim(text)
    assert.equal(kind, 'bot', text)
    assert.equal(called?.id ?? null, id, text)
  }
})

test('a pattern without a letter or digit names no software', async () => {
  const index = indexOf({ id: 'dashes', words: ['---'] })
  assert.equal(nameIn(index, '---'), null)
})

test('where nothing else may stand, nothing else stands', async () => {
  const index = indexOf({ id: 'node', whole: ['node'] }, { id: 'n8n', whole: ['n8n'] })
  for (const [text, id] of [
    ['node', 'node'],
    ['Node', 'node'],
    ['n8n', 'n8n'],
    ['node ', null],
    [' node', null],
    ['node/22', null],
    ['node node', null],
    ['nodes', null],
    ['a n8n', null],
  ] as const)
    assert.equal(nameIn(index, text), id, text)
})

test('of two agents the first is meant, and of two in one place the longer, in whatever order they are known', async () => {
  const list: readonly Entry[] = [
    { id: 'googlebot', kind: 'agent', words: ['Googlebot'] },
    { id: 'googlebot-image', kind: 'agent', words: ['Googlebot-Image'] },
    { id: 'opencode', kind: 'agent', words: ['opencode/'] },
    { id: 'ai-sdk', kind: 'agent', words: ['ai-sdk/'] },
  ]
  for (const index of [indexOf(...list), indexOf(...list.toReversed())])
    for (const [text, id] of [
      ['Googlebot-Image/1.0', 'googlebot-image'],
      ['Googlebot/2.1 Googlebot-Image/1.0', 'googlebot'],
      ['opencode/1.18.33 ai-sdk/provider-utils/4.0.23', 'opencode'],
      ['ai-sdk/provider-utils/4.0.23 opencode/1.18.33', 'ai-sdk'],
      ['FreshRSS like Googlebot', 'googlebot'],
    ] as const)
      assert.equal(nameIn(index, text), id, text)
})

test('an agent that gives way is meant only where no other is named, wherever that stands', async () => {
  const index = indexOf(
    { id: 'headless', kind: 'agent', givesWay: 1, words: ['HeadlessChrome/'] },
    { id: 'nutch', kind: 'agent', givesWay: 1, words: ['Nutch'] },
    { id: 'yextbot', kind: 'agent', words: ['YextBot'] },
    { id: 'other', kind: 'agent', words: ['OtherBot'] },
    { id: 'base', kind: 'agent', givesWay: 2, words: ['BaseBot'] },
    { id: 'chrome', kind: 'browser', givesWay: 1, words: ['Chrome/'] },
    { id: 'edge', kind: 'browser', words: ['Edg/'] },
  )
  for (const [text, id] of [
    ['HeadlessChrome/156 Safari/537.36', 'headless'],
    ['HeadlessChrome/156 Safari/537.36 YextBot/1.0', 'yextbot'],
    ['YextBot/1.0 HeadlessChrome/156', 'yextbot'],
    ['HeadlessChrome/156 YextBot/1.0 OtherBot', 'yextbot'],
    ['HeadlessChrome/156 Nutch', 'headless'],
    ['Nutch HeadlessChrome/156', 'nutch'],
    ['BaseBot Nutch', 'nutch'],
    ['BaseBot Nutch YextBot', 'yextbot'],
    ['HeadlessChrome/156 Edg/156', 'headless'],
    ['BaseBot Edg/156', 'base'],
  ] as const)
    assert.equal(nameIn(index, text), id, text)
})

test('a browser that is named is the one that is most its own', async () => {
  const index = browsers()
  for (const [text, id] of [
    [CHROME, 'chrome'],
    [`${CHROME} Edg/156.0.0.0`, 'edge'],
    [SAFARI, 'safari'],
    [FIREFOX, 'firefox'],
    [`${CHROME} OPR/120.0 Edg/156.0`, 'opera'],
  ] as const)
    assert.equal(nameIn(index, text), id, text)
})

test('agents come before tools, and tools before browsers', async () => {
  const index = indexOf(
    { id: 'chrome', kind: 'browser', words: ['Chrome/'] },
    { id: 'curl', words: ['curl/'] },
    { id: 'gptbot', kind: 'agent', words: ['GPTBot'] },
  )
  for (const [text, id, kind] of [
    ['Mozilla/5.0 Chrome/156', 'chrome', 'browser'],
    ['Mozilla/5.0 Chrome/156 curl/8', 'curl', 'tool'],
    ['Mozilla/5.0 Chrome/156 curl/8 GPTBot/1.2', 'gptbot', 'agent'],
  ] as const) {
    const claim = index.claim(text)
    assert.equal(claim.software?.id, id, text)
    assert.equal(claim.kind, kind, text)
  }
})

test('an unknown User-Agent says what it is, or nothing', async () => {
  const index = browsers()
  for (const [text, kind] of [
    [null, 'none'],
    ['', 'none'],
    [' \t ', 'none'],
    ['corpus-bot/1.0', 'bot'],
    ['MyCrawler', 'bot'],
    ['acme-link-checker/1', 'bot'],
    ['W3C-checklink/5.0', 'bot'],
    ['web spider', 'bot'],
    ['acme scraper 2', 'bot'],
    ['an agent of mine', 'bot'],
    ['acme/1.0 (+https://acme.example)', 'addressed'],
    ['acme/1.0 (www.acme.example)', 'addressed'],
    ['acme/1.0 (who@acme.example)', 'addressed'],
    ['Mozilla/5.0', 'odd-mozilla'],
    ['Mozilla/5.0 (compatible; acme)', 'odd-mozilla'],
    ['Opera/9.80', 'odd-mozilla'],
    ['acme/1.0', 'unknown-product'],
    ['robotics', 'unknown-product'],
    ['Mozilla/5.0 (Linux; Android 13; CUBOT)', 'odd-mozilla'],
  ] as const) {
    const claim = index.claim(text)
    assert.equal(claim.kind, kind, String(text))
    assert.equal(claim.software, null, String(text))
    assert.equal(claim.engine, null, String(text))
    assert.equal(claim.version, 0, String(text))
  }
})

test('a browser’s version is its engine’s', async () => {
  const index = browsers()
  for (const [text, engine, version] of [
    [CHROME, 'blink', 156],
    [`${CHROME.replace('156', '9')} OPR/120.0`, 'blink', 9],
    [CHROME.replace('156', '99999'), 'blink', 9999],
    ['Mozilla/5.0 Edg/156.0', 'blink', 0],
    [FIREFOX, 'gecko', 153],
    [SAFARI, 'webkit', 26],
    ['Mozilla/5.0 Dillo/3.0.5', 'other', 0],
  ] as const) {
    const claim = index.claim(text)
    assert.equal(claim.engine, engine, text)
    assert.equal(claim.version, version, text)
  }
})

test('no engine or version is told of an agent that names a browser', async () => {
  const index = indexOf(
    { id: 'chrome', kind: 'browser', words: ['Chrome/'] },
    { id: 'gptbot', kind: 'agent', words: ['GPTBot'] },
  )
  const claim = index.claim('Chrome/156.0 GPTBot')
  assert.equal(claim.engine, null)
  assert.equal(claim.version, 0)
})

test('platforms, phones, and windows that are not there', async () => {
  const index = browsers()
  for (const [text, platform, isMobile, isHeadless] of [
    [CHROME, 'linux', false, false],
    [SAFARI, 'mac', false, false],
    ['Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/156.0', 'windows', false, false],
    ['Mozilla/5.0 (Linux; Android 14) Chrome/156.0 Mobile Safari/537.36', 'android', true, false],
    ['Mozilla/5.0 (Linux; Android 14) Chrome/156.0 Safari/537.36', 'android', true, false],
    ['Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Safari/604.1', 'ios', true, false],
    ['Mozilla/5.0 (iPad; CPU OS 18_0 like Mac OS X) Safari/604.1', 'ios', true, false],
    ['Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) Chrome/156.0', 'chromeos', false, false],
    ['Mozilla/5.0 (X11; FreeBSD amd64) Chrome/156.0', null, false, false],
    ['HeadlessChrome/156.0', null, false, true],
    ['acme (automobile)', null, false, false],
  ] as const) {
    const claim = index.claim(text)
    assert.deepEqual(
      [claim.platform, claim.isMobile, claim.isHeadless],
      [platform, isMobile, isHeadless],
      text,
    )
  }
})

test('what is built into other programs', async () => {
  const index = browsers()
  for (const [text, isEmbedded] of [
    [CHROME, false],
    [SAFARI, false],
    ['Mozilla/5.0 (X11; Linux x86_64) QtWebEngine/5.15.13 Chrome/87.0 Safari/537.36', true],
    ['Mozilla/5.0 (Linux; Android 14; Pixel 8; wv) Version/4.0 Chrome/156.0 Mobile', true],
    ['Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/605.1.15 Version/26.0 Safari/605.1.15', true],
    ['Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1', false],
    ['Mozilla/5.0 (iPad; CPU OS 18_0) Version/18.0 Safari/604.1', false],
  ] as const)
    assert.equal(index.claim(text).isEmbedded, isEmbedded, text)
})

test('lists everything that a User-Agent names, with its place', async () => {
  const index = indexOf({ id: 'curl', words: ['curl/'] }, { id: 'git', words: ['git/2.'] })
  const found = index.matches('git/2.39 (curl/8.5.0) git/2.40')
  assert.deepEqual(
    found.map(({ software, text, at }) => [software.id, text, at]),
    [
      ['git', 'git/2.', 0],
      ['curl', 'curl/', 10],
      ['git', 'git/2.', 22],
    ],
  )
})

test('a text is read once, as long as it is remembered, and each has a number of its own', async () => {
  const index = browsers()
  const claim = index.claim(CHROME)
  assert.equal(index.claim(CHROME), claim)
  assert.notEqual(index.claim(SAFARI).number, claim.number)
  assert.notEqual(index.claim(null).number, claim.number)
  assert.equal(index.claim(null), index.claim(null))
})

test('ever new User-Agents do not fill memory, nor drive out one that is in use', async () => {
  const index = browsers()
  const used = index.claim(CHROME)
  const early = index.claim('early/1.0')
  const held: WeakRef<Claim>[] = []
  for (let i = 0; i < 20_000; i++) {
    held.push(new WeakRef(index.claim(`acme/${i}.0`)))
    if (i % 1000 === 0) assert.equal(index.claim(CHROME), used)
  }
  assert.notEqual(index.claim('early/1.0'), early)
  // A WeakRef keeps what it points to until the end of the turn in which it was made.
  await new Promise((resolve) => setImmediate(resolve))
  collectGarbage()
  const alive = held.filter((claim) => claim.deref() !== undefined).length
  assert.ok(alive > 0, 'the last ones are remembered')
  assert.ok(alive <= 2 * 4096, `${alive} are remembered`)
})

test('a long text is read each time, to an end, and found in its beginning only', async () => {
  const index = browsers()
  const long = `${CHROME} ${'x'.repeat(512)}`
  assert.equal(nameIn(index, long), 'chrome')
  assert.notEqual(index.claim(long), index.claim(long))
  assert.equal(nameIn(index, `Mozilla/5.0${' '.repeat(1000)} Chrome/1`), 'chrome')
  assert.equal(nameIn(index, `Mozilla/5.0${' '.repeat(1013)}Chrome/1`), null)
  const cut = indexOf({ id: 'agent', words: ['acme-agent/'] })
  assert.equal(nameIn(cut, `${' '.repeat(1020)}acme-agent/1`), null)
})

test('hostile texts are read, and name no software', async () => {
  const index = browsers()
  const texts = [
    ...['x', '/', ' ', 'chrome', 'a ', '\0', '\xff', '((((', 'http:', 'curl-'].map((each) =>
      each.repeat(100_000 / each.length),
    ),
    Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)).join(''),
    '\r\nx-injected: 1',
    '\u{1f916}',
    '\ud800',
    'İstanbul/1',
    '__proto__',
    'constructor/1 toString/2 hasOwnProperty',
  ]
  for (const text of texts) {
    const claim = index.claim(text)
    assert.equal(claim.software, null, JSON.stringify(text.slice(0, 40)))
    assert.deepEqual(index.matches(text), [])
  }
})

test('control characters next to a word do not hide it', async () => {
  const index = indexOf({ id: 'curl', words: ['curl/'] })
  for (const text of ['\0curl/8', 'curl/\0', '\tcurl/8\n', '\xffcurl/8'])
    assert.equal(nameIn(index, text), 'curl')
  assert.equal(nameIn(index, 'cu\0rl/8'), null)
})

interface Entry {
  readonly id: string
  readonly kind?: 'agent' | 'tool' | 'browser'
  readonly engine?: 'blink' | 'gecko' | 'webkit' | 'other'
  readonly givesWay?: 0 | 1 | 2 | 3
  readonly words?: readonly string[]
  readonly whole?: readonly string[]
}

function indexOf(...entries: readonly Entry[]): UserAgentIndex {
  const list = entries.map(
    ({ id, kind = 'tool', engine = 'blink', givesWay = 0, words = [], whole = [] }) => ({
      id,
      name: id,
      kind,
      gives_way: givesWay,
      ...(kind === 'agent' ? { category: 'custom' } : {}),
      ...(kind === 'browser' ? { engine } : {}),
      signatures: [
        ...words.map((text) => ({ user_agent: text, ...SOURCE })),
        ...whole.map((text) => ({ user_agent: text, match: 'whole', ...SOURCE })),
      ],
    }),
  )
  return new UserAgentIndex(parseSoftwareList(list))
}

function browsers(): UserAgentIndex {
  return indexOf(
    { id: 'safari', kind: 'browser', engine: 'webkit', givesWay: 2, words: ['Safari/'] },
    { id: 'chrome', kind: 'browser', givesWay: 1, words: ['Chrome/'] },
    { id: 'firefox', kind: 'browser', engine: 'gecko', givesWay: 1, words: ['Firefox/'] },
    { id: 'edge', kind: 'browser', words: ['Edg/'] },
    { id: 'opera', kind: 'browser', words: ['OPR/'] },
    { id: 'dillo', kind: 'browser', engine: 'other', words: ['Dillo/'] },
  )
}

function nameIn(index: UserAgentIndex, text: string): string | null {
  return index.claim(text).software?.id ?? null
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  assert.ok(typeof collect === 'function')
  collect()
}
