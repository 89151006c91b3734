import assert from 'node:assert/strict'
import { test } from 'tap'
import { isGrease } from '../../src/fingerprint/grease.ts'

/** RFC 8701 §2. */
const TABLE = new Set([
  ...[0x0a0a, 0x1a1a, 0x2a2a, 0x3a3a, 0x4a4a, 0x5a5a, 0x6a6a, 0x7a7a],
  ...[0x8a8a, 0x9a9a, 0xaaaa, 0xbaba, 0xcaca, 0xdada, 0xeaea, 0xfafa],
])

test('GREASE is what the table of RFC 8701 has, of all 16-bit values', async () => {
  for (let value = 0; value <= 0xffff; value++) {
    assert.equal(isGrease(value), TABLE.has(value), value.toString(16))
  }
})
