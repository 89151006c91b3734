import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { HpackDecoder } from '../../../src/wire/h2/hpack-decoder.ts'
import { HpackEncoder } from '../../../src/wire/h2/hpack-encoder.ts'

test('hpack: what the encoder writes, the decoder reads', async () => {
  const text = fc.string({
    unit: fc.integer({ min: 0, max: 255 }).map((c) => String.fromCharCode(c)),
    maxLength: 200,
  })
  const name = fc.oneof(
    fc.constantFrom('content-type', 'date', 'set-cookie', 'etag', 'x-a', 'x-b', 'cookie'),
    text,
  )
  const value = fc.oneof(fc.constantFrom('a', 'b', '', 'c'.repeat(300)), text)
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.array(fc.tuple(name, value), { maxLength: 12 }) },
    { weight: 1, arbitrary: fc.oneof(fc.nat(5000), fc.nat(200)) },
  )
  const property = fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
    const encoder = new HpackEncoder()
    const decoder = new HpackDecoder({ tableBytesMax: 4096, listBytesMax: 1e6, fieldsMax: 1e6 })
    for (const one of steps) {
      if (typeof one === 'number') {
        encoder.allow(one)
        continue
      }
      encoder.begin(9)
      encoder.status(200 + one.length)
      for (const field of one) encoder.field(...field)
      const list: string[] = []
      assert.equal(decoder.decode(encoder.end().subarray(9), list), 'whole')
      assert.deepEqual(list, [':status', `${200 + one.length}`, ...one.flat()])
    }
  })
  fc.assert(property, { numRuns: 20_000, interruptAfterTimeLimit: 1500, markInterruptAsFailure: false })
})
