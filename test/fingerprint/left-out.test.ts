import assert from 'node:assert/strict'
import { test } from 'tap'
import { isGrease } from '../../src/fingerprint/grease.ts'
import { countWithout, FLEETING, GREASE, isLeftOut, SHOWN_ELSEWHERE } from '../../src/fingerprint/left-out.ts'

test('every 16-bit value is left out by its own mark and by no other', async () => {
  const shown = [0x0000, 0x0010]
  const fleeting = [0x0015, 0x0023, 0x0029, 0x002a, 0x002c]
  for (let value = 0; value <= 0xffff; value++) {
    const expected = [isGrease(value), shown.includes(value), fleeting.includes(value)]
    assert.deepEqual(
      [GREASE, SHOWN_ELSEWHERE, FLEETING].map((mark) => isLeftOut(value, mark)),
      expected,
    )
    const leftOut = expected.some((is) => is)
    assert.equal(isLeftOut(value, GREASE | SHOWN_ELSEWHERE | FLEETING), leftOut, value.toString(16))
    assert.equal(isLeftOut(value, 0), false)
  }
})

test('counts everything that is not left out', async () => {
  const values = [0x0a0a, 0x0000, 0x0017, 0x0017, 0x0029]
  assert.equal(countWithout(values, GREASE), 4)
  assert.equal(countWithout(values, GREASE | FLEETING), 3)
  assert.equal(countWithout(values, 0), 5)
  assert.equal(countWithout([], GREASE), 0)
})
