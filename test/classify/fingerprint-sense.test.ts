import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'tap'
import { JA4_TYPES, type Ja4Type, wrongInFingerprint } from '../../src/classify/known/fingerprint-form.ts'
import { doubtsAbout } from '../../src/classify/known/fingerprint-sense.ts'
import { looksOf, mixesScripts, wrongInName } from '../../src/classify/known/name-likeness.ts'

test('nothing that was ever measured of a client is impossible, or odd', async () => {
  const known = new Set<string>()
  for (const file of globSync('signatures/*.yaml'))
    for (const [, type, value] of readFileSync(file, 'utf8').matchAll(/\{ (ja4[shx]?): ([^ ,*]+),/g))
      known.add(`${type} ${value}`)
  assert.ok(known.size > 100, `${known.size}`)
  for (const each of known) {
    const [type, value] = each.split(' ') as [Ja4Type, string]
    assert.equal(wrongInFingerprint(type, value, false), null, each)
    assert.deepEqual(doubtsAbout(type, value), [], each)
  }
})

const DOUBTS: readonly (readonly [Ja4Type, string, readonly string[]])[] = [
  ['ja4', 't12i000000_000000000000_000000000000', ['empty']],
  ['ja4', 't13d1516h2_000000000000_e5627efa2ab1', ['impossible']],
  ['ja4', 't13d0016h2_8daaf6152771_e5627efa2ab1', ['impossible']],
  ['ja4', 't13d1516h2_8daaf6152771_000000000000', ['impossible', 'odd']],
  ['ja4', 't12d150100_8daaf6152771_000000000000', []],
  ['ja4', 't12d1501h2_8daaf6152771_000000000000', ['impossible']],
  ['ja4', 't12d1502h2_8daaf6152771_000000000000', []],
  ['ja4', 't12d1502h2_8daaf6152771_e5627efa2ab1', ['impossible']],
  ['ja4', 't12d1503h2_8daaf6152771_e5627efa2ab1', []],
  ['ja4', 't10i1500h2_8daaf6152771_000000000000', ['impossible']],
  ['ja4', 't10i150000_8daaf6152771_000000000000', []],
  ['ja4', 'q12d1516h3_8daaf6152771_e5627efa2ab1', ['odd']],
  ['ja4', 'q13d1516h1_8daaf6152771_e5627efa2ab1', ['odd']],
  ['ja4', 't13d1516h3_8daaf6152771_e5627efa2ab1', ['odd']],
  ['ja4', 'td2d1516h2_8daaf6152771_e5627efa2ab1', ['odd']],
  ['ja4', 'd12d151600_8daaf6152771_e5627efa2ab1', ['odd']],
  ['ja4', 'dd2d151600_8daaf6152771_e5627efa2ab1', []],
  ['ja4', 't13d1516h2_aaaaaaaaaaaa_e5627efa2ab1', ['odd']],
  ['ja4s', 't130200_1301_a56c5b993250', []],
  ['ja4s', 't130200_c02f_a56c5b993250', ['odd']],
  ['ja4s', 't120200_1301_a56c5b993250', ['impossible']],
  ['ja4s', 't120200_00ff_a56c5b993250', ['impossible']],
  ['ja4s', 't120000_c02f_a56c5b993250', ['impossible']],
  ['ja4h', 'ge11nn050000_0123456789ab_000000000000_000000000000', []],
  ['ja4h', 'ge11nn050000_0123456789ab_0123456789ab_000000000000', ['impossible', 'impossible']],
  ['ja4h', 'ge11cn050000_0123456789ab_0123456789ab_0123456789ab', ['one_visitor']],
  ['ja4h', 'ge11cn000000_0123456789ab_0123456789ab_0123456789ab', ['impossible', 'odd', 'one_visitor']],
  ['ja4h', 'ge20nn00enus_000000000000_000000000000_000000000000', ['empty', 'impossible']],
  ['ja4x', '000000000000_000000000000_000000000000', ['empty']],
  ['ja4x', '000000000000_000000000000_0123456789ab', []],
]

test('parts that deny each other, and what hardly anything sends', async () => {
  for (const [type, value, codes] of DOUBTS) {
    assert.equal(wrongInFingerprint(type, value, false), null, value)
    assert.deepEqual(
      doubtsAbout(type, value).map(({ code }) => code),
      codes,
      value,
    )
  }
  assert.deepEqual(new Set(DOUBTS.map(([type]) => type)), new Set(JA4_TYPES))
})

test('names that are taken for each other look the same, and others do not', async () => {
  const gptbot = [
    'GPTBot',
    'gpt-bot',
    'G\u0420TBot',
    '\u0261\u03c1\u03c4b\u03bft',
    'GPTB0T',
    '\uff27PTBot',
    '\u{1d406}PTBot',
    'GP\u0301TBot',
  ]
  for (const name of gptbot) assert.equal(looksOf(name), looksOf('GPTBot'), name)
  for (const name of ['ClaudeBot', 'C1audeBot', 'CIaudeBot', 'C\u217caudeBot'])
    assert.equal(looksOf(name), looksOf('ClaudeBot'), name)
  assert.equal(looksOf('rnistral'), looksOf('mistral'))
  for (const name of ['GPTBots', 'GTPBot', 'Bot', 'ChatGPT'])
    assert.notEqual(looksOf(name), looksOf('GPTBot'))
  const mixed = {
    G\u0420TBot: true,
    '\u767e\u5ea6Spider': false,
    '\u042f\u043d\u0434\u0435\u043a\u0441 Bot': false,
    'Caf\u00e9': false,
  }
  for (const [name, isMixed] of Object.entries(mixed)) assert.equal(mixesScripts(name), isMixed, name)
})

test('a name is text that people can see', async () => {
  for (const name of ['Acme', '\u767e\u5ea6', 'Caf\u00e9 2.0', "d'Artagnan", '@scope/agent', '\u0e01\u0e33'])
    assert.equal(wrongInName(name), null, name)
  for (const name of [
    '',
    ' ',
    ' a',
    'a ',
    'a\tb',
    'a\u00adb',
    'a\u2060b',
    '\ufeffa',
    'a\ud800',
    '\u3164a',
    '--',
    '\ue000a',
  ])
    assert.notEqual(wrongInName(name), null, JSON.stringify(name))
})
