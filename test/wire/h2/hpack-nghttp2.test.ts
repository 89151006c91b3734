import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { HpackDecoder } from '../../../src/wire/h2/hpack-decoder.ts'
import { HpackEncoder } from '../../../src/wire/h2/hpack-encoder.ts'
import { decode } from './hpack-model.ts'
import { Nghttp2Client } from './nghttp2.ts'

const REQUEST = [':method', 'GET', ':scheme', 'http', ':authority', 'test', ':path', '/']

test('hpack: requests of nghttp2 are read, and nghttp2 reads our responses, whatever the sizes of the tables', async () => {
  const value = fc.oneof(
    fc.constantFrom('', 'a', 'text/html', 'x'.repeat(3000), '\xe9\xff', '{"a":"<b>"}'),
    fc.string({ unit: 'grapheme-ascii', maxLength: 60 }).map((text) => text.trim()),
  )
  const name = fc.oneof(
    fc.constantFrom('content-type', 'date', 'set-cookie', 'x-a', 'x-b', 'etag', 'cookie', 'authorization'),
    fc.stringMatching(/^x-[a-z0-9-]{1,30}$/),
  )
  const fields = fc.array(fc.tuple(name, value), { maxLength: 12 }).map((list) => list.flat())
  const size = fc.option(fc.oneof(fc.nat(8192), fc.nat(200)), { freq: 4 })
  const step = fc.record({
    request: fields,
    response: fields,
    theirs: size,
    ours: size,
    status: fc.integer({ min: 200, max: 599 }),
  })
  let blocks = 0
  const property = fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
    const client = await Nghttp2Client.open()
    const decoder = new HpackDecoder()
    const encoder = new HpackEncoder()
    try {
      for (const { request, response, theirs, ours, status } of steps) {
        if (theirs !== null) await client.allow(theirs)
        if (ours !== null) {
          await client.limit(ours)
          encoder.allow(ours)
        }
        const answered = await client.ask([...REQUEST, ...request], (block) => {
          assert.deepEqual(decode(decoder, block), [...REQUEST, ...request])
          encoder.begin(0)
          encoder.status(status)
          for (let i = 0; i < response.length; i += 2) encoder.field(response[i]!, response[i + 1]!)
          return encoder.end()
        })
        assert.deepEqual(answered, [':status', `${status}`, ...response])
        blocks++
      }
    } finally {
      client.close()
    }
  })
  await fc.assert(property, { numRuns: 20_000, interruptAfterTimeLimit: 2500, markInterruptAsFailure: false })
  assert.ok(blocks > 20)
})
