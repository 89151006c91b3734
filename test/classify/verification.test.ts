import assert from 'node:assert/strict'
import { test } from 'tap'
import { parseSoftwareList } from '../../src/classify/known/software.ts'
import { softwareDocument } from '../../src/classify/known/software-document.ts'

test('how an agent can be verified is read, and written as it was', async () => {
  const verification = {
    reverse_dns: ['.crawl.bot.test', 'bot.example'],
    asns: [64500, 4_294_967_295],
    signature_agent: 'https://bot.test/agent.json',
  }
  const [bot] = parseSoftwareList([agent(verification)])
  assert.deepEqual(bot!.verification, {
    ...{ rangesUrl: null, ranges: null, reverseDns: verification.reverse_dns, asns: verification.asns },
    signatureAgent: verification.signature_agent,
  })
  assert.deepEqual(softwareDocument(bot!)['verification'], verification)
  assert.deepEqual(parseSoftwareList([agent(null)])[0]!.verification.asns, [])
})

test('refuses invalid input', async () => {
  const table: readonly (readonly [verification: object, problem: RegExp])[] = [
    [
      { asns: ['AS64500'] },
      /verification\.asns\.0: is "AS64500"; expected a whole number from 1 to 4294967295/,
    ],
    [{ asns: [64500, 0] }, /verification\.asns\.1: is 0/],
    [{ asns: [4_294_967_296] }, /verification\.asns\.0: is 4294967296/],
    [{ asns: [1.5] }, /verification\.asns\.0: is 1\.5/],
    [{ asns: [] }, /verification\.asns: is an empty list/],
    [{ asn: [64500] }, /did you mean "asns"/],
    // Everybody has a name that ends so.
    [{ reverse_dns: ['.com'] }, /verification\.reverse_dns\.0: is "\.com"; expected a host name suffix/],
    [{ reverse_dns: ['*.bot.test'] }, /verification\.reverse_dns\.0: is "\*\.bot\.test"/],
    [{ reverse_dns: ['.Bot.test'] }, /verification\.reverse_dns\.0: is "\.Bot\.test"/],
    [{ signature_agent: 'bot.test' }, /verification\.signature_agent: "bot\.test" is not a valid URL/],
  ]
  for (const [verification, problem] of table)
    assert.throws(() => parseSoftwareList([agent(verification)]), problem)
})

function agent(verification: object | null) {
  const signatures = [{ user_agent: 'Bot/', source: 's', date: '2026-11-21' }]
  return {
    ...{ id: 'bot', name: 'Bot', kind: 'agent', category: 'crawler' },
    ...(verification !== null && { verification }),
    signatures,
  }
}
