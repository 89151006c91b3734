import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { EVIDENCE_KINDS } from '../../src/classify/known/evidence.ts'
import { CLASSES, parseWeights } from '../../src/classify/known/weights.ts'
import { balanceOf } from '../../src/manage/judging/balance.ts'
import { knowledgeOf } from '../../src/runtime/signatures/knowledge-files.ts'

const WEIGHTS = parseWeights({
  temperature: 2,
  calibration: [{ probability: 0.5, right: 0.5 }],
  bias: { agent: 0, automation: 0, human: 1 },
  weights: {
    'names-agent': { agent: 6, automation: 1, human: -2 },
    headless: { agent: 0, automation: 5, human: -1 },
    'browser-headers': { agent: -2, automation: -1, human: 2 },
  },
})
const KNOWLEDGE = knowledgeOf([], WEIGHTS)

test('evidence is weighed for the program of the verdict against a person', async () => {
  const { program, start, evidence, sum } = balanceOf(
    KNOWLEDGE,
    ['browser-headers', 'names-agent', 'signature-proven'],
    'agent',
  )
  assert.deepEqual([program, start, sum], ['agent', -0.5, 1.5])
  assert.deepEqual(
    evidence.map(({ kind, weight }) => [kind, weight]),
    [
      ['names-agent', 4],
      ['browser-headers', -2],
      ['signature-proven', 0],
    ],
  )
})

test('without a program in the verdict, it is weighed for the likelier one', async () => {
  const programOf = (kinds: readonly string[]) => balanceOf(KNOWLEDGE, kinds, 'human').program
  assert.deepEqual([programOf(['headless']), programOf(['names-agent'])], ['automation', 'agent'])
  assert.equal(balanceOf(KNOWLEDGE, ['headless'], 'automation').sum, 2.5)
  assert.deepEqual(balanceOf(KNOWLEDGE, [], 'unknown').evidence, [])
  assert.equal(balanceOf(KNOWLEDGE, ['of-a-later-version', 'headless'], 'automation').sum, 2.5)
})

test('the weights add up to the odds between the two classes', async () => {
  fc.assert(
    fc.property(
      fc.subarray([...EVIDENCE_KINDS]),
      fc.constantFrom('agent' as const, 'automation' as const),
      (kinds, verdict) => {
        const { start, evidence, sum } = balanceOf(KNOWLEDGE, kinds, verdict)
        const at = CLASSES.indexOf(verdict)
        const own = (triple: readonly number[]) => (triple[at]! - triple[2]!) / WEIGHTS.temperature
        const all = kinds.map((kind) => own(WEIGHTS.kinds[EVIDENCE_KINDS.indexOf(kind)]!))
        const odds = all.reduce((total, each) => total + each, own(WEIGHTS.bias))
        assert.ok(Math.abs(sum - odds) < 0.4, `${sum}, ${odds}`)
        const shown = evidence.reduce((total, { weight }) => total + weight, start)
        assert.ok(Math.abs(shown - sum) < 1e-9)
      },
    ),
  )
})
