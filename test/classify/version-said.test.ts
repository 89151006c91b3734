import assert from 'node:assert/strict'
import { test } from 'tap'
import { parseSoftwareList } from '../../src/classify/known/software.ts'
import { UserAgentIndex } from '../../src/classify/known/user-agent.ts'
import { versionSaid } from '../../src/classify/known/version-said.ts'

const said = { source: 'a test', date: '2026-11-21' }
const of = (id: string, ...words: string[]) => ({
  ...{ id, name: id, kind: 'agent', category: 'custom' },
  signatures: words.map((user_agent) => ({ user_agent, ...said })),
})
const index = new UserAgentIndex(
  parseSoftwareList([
    of('bot', 'ExampleBot/'),
    of('sdk', 'Acme/Python', 'AsyncAcme/Python'),
    of('cli', 'acme-cli'),
  ]),
)

for (const [software, userAgent, version] of [
  ['bot', 'Mozilla/5.0 (compatible; ExampleBot/1.2; +https://example.com/bot)', '1.2'],
  ['bot', 'ExampleBot/2', '2'],
  ['bot', 'examplebot/v1.2.3-Beta.1+build', '1.2.3-Beta.1'],
  ['bot', 'ExampleBot/1.2.', '1.2'],
  ['bot', 'ExampleBot/latest', null],
  ['bot', 'ExampleBot', null],
  ['bot', 'ExampleBot/ 1.2', '1.2'],
  ['bot', 'Mozilla/5.0 AnotherBot/1.2', null],
  ['bot', `ExampleBot/${'1'.repeat(32)}`, '1'.repeat(32)],
  ['bot', `ExampleBot/${'1'.repeat(33)}`, null],
  ['bot', `ExampleBot/1.${'.'.repeat(40)}2`, null],
  ['sdk', 'Acme/Python 1.30.1', '1.30.1'],
  ['sdk', 'AsyncAcme/Python/1.30.1', '1.30.1'],
  ['sdk', 'Acme/Python  1.30.1', null],
  ['cli', 'acme-cli/0.4 sdk/1.0', '0.4'],
  ['cli', 'acme-cli 0.4', '0.4'],
  ['cli', 'acme-cli, 4', null],
  ['cli', 'acme-cli (x) acme-cli/5', '5'],
  ['cli', '', null],
] as const)
  test(`${userAgent.slice(0, 60)} says ${version?.slice(0, 20)} of ${software}`, async () => {
    assert.equal(versionSaid(index, software, userAgent), version)
  })
