import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { Pieces } from '../../src/capture/pieces.ts'
import { timeBox } from '../time-box.ts'

test('pieces: any order and overlap; the bytes that came first stay', async () => {
  const piece = fc.record({
    offset: fc.nat(40),
    bytes: fc.uint8Array({ maxLength: 20 }),
  })
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), fc.nat(50), (all, length) => {
      const pieces = new Pieces()
      const expected: (number | undefined)[] = new Array(length).fill(undefined)
      for (const { offset, bytes } of all) {
        const borrowed = Buffer.from(bytes)
        pieces.add(offset, borrowed)
        borrowed.fill(0xee)
        for (const [i, byte] of bytes.entries()) if (offset + i < length) expected[offset + i] ??= byte
        const whole = expected.includes(undefined) ? null : Buffer.from(expected as number[])
        assert.deepEqual(pieces.join(length), whole)
      }
    }),
    timeBox(50_000, 1_500),
  )
})

test('pieces: what comes again takes no room', async () => {
  const pieces = new Pieces()
  for (let time = 0; time < 10_000; time++) pieces.add(time % 3, Buffer.from('abcdef').subarray(time % 3, 4))
  pieces.add(4, Buffer.from('ef'))
  assert.equal(pieces.join(6)?.toString(), 'abcdef')
})

test('pieces: there is an end to them', async () => {
  const pieces = new Pieces()
  for (let i = 0; i < 1000; i++) pieces.add(2 * i, Buffer.of(i))
  for (let i = 0; i < 1000; i++) pieces.add(2 * i + 1, Buffer.of(i))
  assert.equal(pieces.join(2000), null)
})
