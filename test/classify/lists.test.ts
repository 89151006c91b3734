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

/** By the User-Agent alone. */
function verdictOf(userAgent: string) {
  const told = { ...NOTHING, userAgent }
  return classifyDescribed(KNOWLEDGE, describeRequest(told, true), 0).verdict
}
