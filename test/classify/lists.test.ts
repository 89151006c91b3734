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

/** By the User-Agent alone. */
function verdictOf(userAgent: string) {
  const told = { ...NOTHING, userAgent }
  return classifyDescribed(KNOWLEDGE, describeRequest(told, true), 0).verdict
}
