import assert from 'node:assert/strict'
import { test } from 'tap'
import { parseSoftwareList } from '../../src/classify/known/software.ts'
import { softwareDocument } from '../../src/classify/known/software-document.ts'
import { placed, readSource } from '../../src/config/source.ts'

const SOURCE = { source: 'bot.test/about', date: '2026-11-21' }

test('the purposes of an agent are read, and written as they were', async () => {
  const purpose = [
    { is: 'archive', source: 'bot.test', date: '2026-11-21' },
    { is: 'training', source: 'a public list', date: '2026-08-22' },
  ]
  const [bot] = parseSoftwareList([agent(purpose)])
  assert.deepEqual(bot!.purposes, ['archive', 'training'])
  assert.deepEqual(bot!.purposeSources, [
    { source: 'bot.test', date: '2026-11-21' },
    { source: 'a public list', date: '2026-08-22' },
  ])
  const document = softwareDocument(bot!)
  assert.deepEqual(document['purpose'], purpose)
  assert.deepEqual(parseSoftwareList([document]), [bot])
})

test('a single purpose can stand without a list', async () => {
  const [bot] = parseSoftwareList([agent({ is: 'monitor', ...SOURCE })])
  assert.deepEqual(bot!.purposes, ['monitor'])
  assert.deepEqual(softwareDocument(bot!)['purpose'], [{ is: 'monitor', ...SOURCE }])
})

test('an agent without a published purpose has none', async () => {
  const [bot] = parseSoftwareList([agent(undefined)])
  assert.deepEqual([bot!.purposes, bot!.purposeSources], [[], []])
  assert.ok(!('purpose' in softwareDocument(bot!)))
})

test('refuses invalid purposes and names their place', async () => {
  const table: readonly (readonly [purpose: unknown, problem: RegExp])[] = [
    [
      [{ is: 'serch', ...SOURCE }],
      /software "bot": 0\.purpose\.0\.is: is "serch"; expected search, assistant, .*, security \(did you mean "search"\?\)/,
    ],
    [[{ is: 'search' }], /0\.purpose\.0: needs `is`, `source` and `date`/],
    [[{ ...SOURCE }], /0\.purpose\.0: needs `is`, `source` and `date`/],
    [['search'], /0\.purpose\.0: is "search"; expected a mapping/],
    [[{ is: 'search', ...SOURCE, date: '2026-02-30' }], /purpose\.0\.date: is "2026-02-30"; expected a day/],
    [[{ is: 'search', ...SOURCE, source: 7 }], /purpose\.0\.source: is 7; expected where it was published/],
    [[{ is: 'search', of: 'x', ...SOURCE }], /purpose\.0\.of: unknown field/],
    [
      [
        { is: 'search', ...SOURCE },
        { is: 'search', ...SOURCE },
      ],
      /purpose\.1\.is: search is already given/,
    ],
    [[], /0\.purpose: is an empty list/],
  ]
  for (const [purpose, problem] of table)
    assert.throws(() => parseSoftwareList([agent(purpose)]), problem, JSON.stringify(purpose))
  const tool = { id: 'tool', name: 'Tool', kind: 'tool', purpose: { is: 'search', ...SOURCE } }
  assert.throws(() => parseSoftwareList([tool]), /software "tool": 0\.purpose: is allowed only for agents/)
})

test('a file with an unknown purpose names the line', async () => {
  const text = `- id: bot
  name: Bot
  kind: agent
  category: crawler
  purpose:
    - { is: traning, source: bot.test, date: 2026-11-21 }
  robots_token: Bot
`
  const source = readSource(text, 'own.yaml')
  assert.throws(
    () => placed(source, () => parseSoftwareList(source.value)),
    /own\.yaml:6:\d+: .*"traning".*did you mean "training"/,
  )
})

function agent(purpose: unknown) {
  const signatures = [{ user_agent: 'Bot/', ...SOURCE }]
  return {
    ...{ id: 'bot', name: 'Bot', kind: 'agent', category: 'crawler' },
    ...(purpose !== undefined && { purpose }),
    signatures,
  }
}
