import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'tap'
import { parse } from 'yaml'
import { classifyDescribed } from '../../src/classify/verdict/classify.ts'
import { describeRequest } from '../../src/classify/verdict/described-request.ts'
import { loadKnowledge } from '../../src/runtime/signatures/knowledge-files.ts'

const NOTHING = {
  ...{
    method: null,
    target: null,
    version: null,
    rawHeaders: null,
    address: null,
    noHello: null,
    isTls: null,
  },
  ...{ ja4: null, stable: null, ja4s: null, ja4x: null, ja4h: null, http2: null },
}

/** Public lists of declared bots, whose User-Agents are not copied into this repository. */
const LISTS = [
  {
    file: '../shared/facts/lists/matomo-bots.yml',
    read: (text: string) => (parse(text) as { user_agent: string }[]).map((bot) => bot.user_agent),
    namedMin: 0.58,
    humanMax: 0.003,
  },
  {
    file: '../shared/facts/lists/crawler-detect.txt',
    read: (text: string) => text.split('\n').filter((line) => line !== ''),
    namedMin: 0.46,
    humanMax: 0.005,
  },
]

const KNOWLEDGE = await loadKnowledge(null, null)

for (const { file, read, namedMin, humanMax } of LISTS)
  test(`declared bots of ${file}`, { skip: !existsSync(file) && `${file} is not there` }, async () => {
    const verdicts = read(readFileSync(file, 'utf8')).map(verdictOf)
    assert.ok(verdicts.length > 1000)
    const human = verdicts.filter(({ kind }) => kind === 'human').length / verdicts.length
    const named = verdicts.filter(({ agent }) => agent !== null).length / verdicts.length
    assert.ok(human <= humanMax, `${human} are called human`)
    assert.ok(named >= namedMin, `${named} are named`)
  })

test('a browser of a person is human by its User-Agent alone', async () => {
  const webkit = 'AppleWebKit/605.1.15 (KHTML, like Gecko)'
  const chrome = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0'
  for (const userAgent of [
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${chrome} Safari/537.36`,
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${chrome} Safari/537.36 Edg/156.0.0.0`,
    `Mozilla/5.0 (Linux; Android 10; K) ${chrome} Mobile Safari/537.36`,
    `Mozilla/5.0 (Linux; Android 15; Pixel 9 Build/AP4A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/156.0.7700.10 Mobile Safari/537.36 Viber/25.1`,
    'Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0',
    `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${webkit} Version/26.1 Safari/605.1.15`,
    `Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) ${webkit} Mobile/15E148`,
  ])
    assert.equal(verdictOf(userAgent).kind, 'human', userAgent)
})

test('a browser of a person that is old, rare, or in an app is not called an agent', async () => {
  for (const [userAgent, ...kinds] of [
    ['Mozilla/5.0 (Nintendo 3DS; U; ; en) Version/1.7498.EU', 'human'],
    ['Mozilla/5.0 (PLAYSTATION 3; 3.55)', 'human'],
    ['Opera/6.04 (Windows 2000; U) [en]', 'human'],
    ['Mozilla/5.0 (X11; Linux x86_64) Cobalt/23.lts.1.0-qa (unlike Gecko) Starboard/15', 'human'],
    ['Mozilla/4.79 [en] (X11; U; SunOS 5.10 i86pc)', 'unknown'],
    ['Mozilla/5.0 (Linux; Android 10)', 'unknown'],
    ['Mozilla/5.0 (Apple TV; U; CPU iPhone OS 10_1_1 like Mac OS X; en-US) FOX Sports GO/1160', 'unknown'],
    // A fork of Firefox, an extension, and the German word for an offer.
    ['Mozilla/5.0 (Android 13; Mobile; rv:109.0) Gecko/112.0 Firefox/112.0 Freespoke/2.0.0', 'human'],
    ['Mozilla/5.0 (masking-agent; rv:49.0) Gecko/20100101 Firefox/49.0', 'human'],
    [
      'Mozilla/5.0 (iPhone; CPU iPhone OS 12_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/16A (angebot="app")',
      'human',
    ],
    [
      'Mozilla/5.0 (Windows NT 5.1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/33.0.1750.157 CocCoc/33.0.1750.157 Safari/537.36',
      'human',
    ],
    // The program of a messenger, and its previews.
    [
      'Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) WhatsApp/2.2017.6 Chrome/76.0 Electron/6.1.9 Safari/537.36',
      'human',
    ],
    ['WhatsApp/2.22.9.76 i', 'agent'],
    ['Opera autoupdate agent', 'automation'],
  ] as const)
    assert.ok((kinds as readonly string[]).includes(verdictOf(userAgent).kind), userAgent)
})

test("a browser's name in what no browser sends, or beside that of a bot, is not a person's", async () => {
  const chrome =
    'Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/102.0 Safari/537.36'
  for (const [userAgent, kind] of [
    [`${chrome} by Siteimprove`, 'agent'],
    [`${chrome} ${chrome}`, 'automation'],
    [`${chrome.replace('5.0', '9.9')}`, 'automation'],
    [`5.0 ${chrome.slice(8)}  cookieEnabled  false  onLine  true`, 'automation'],
    ['Smartsite HTTPClient - Mozilla/4.0 (compatible; MSIE 6.0)', 'agent'],
    ['Mozilla/4.0 (compatible; MSIE 6.0; Bluecoat DRTR)', 'agent'],
    [
      'Mozilla/5.0 (Windows NT 10.0) AppleWebKit/613.1 (KHTML, like Gecko) JavaFX/8.0 Safari/613.1',
      'automation',
    ],
    [chrome.replace('Gecko)', 'Gecko; googleweblight)'), 'automation'],
  ] as const)
    assert.equal(verdictOf(userAgent).kind, kind, userAgent)
})

/** By the User-Agent alone. */
function verdictOf(userAgent: string) {
  const told = { ...NOTHING, userAgent }
  return classifyDescribed(KNOWLEDGE, describeRequest(told, true), 0).verdict
}
