import assert from 'node:assert/strict'
import { test } from 'tap'
import { EVIDENCE_KINDS, EvidenceSet } from '../../src/classify/known/evidence.ts'

test('a set of evidence has a bit of its own for each kind', async () => {
  assert.ok(EVIDENCE_KINDS.length <= 64, 'a set is two numbers of 32 bits: extend it')
  const all = EvidenceSet.of(EVIDENCE_KINDS)
  assert.deepEqual(all.kinds(), EVIDENCE_KINDS)
  for (const kind of EVIDENCE_KINDS) assert.deepEqual(EvidenceSet.of([kind]).kinds(), [kind])
})
