import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { FrameReader, Step } from '../../../src/wire/h2/frame-reader.ts'
import { frame } from '../../proxy/http2-frames.ts'
import { timeBox } from '../../time-box.ts'

interface Sent {
  readonly type: number
  readonly stream: number
  readonly payload: Uint8Array
}

const sent: fc.Arbitrary<Sent> = fc
  .tuple(fc.constantFrom(0, 0, 1, 6, 8), fc.nat(9), fc.uint8Array({ maxLength: 300 }))
  .map(([type, stream, payload]) => ({ type, stream, payload }))

test('frames are read the same from a buffer that is used again, wherever reading stops', async () => {
  const property = fc.property(
    fc.array(sent, { maxLength: 20 }),
    fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1 }),
    fc.array(fc.nat(6), { minLength: 1 }),
    (frames, lengths, steps) => {
      const bytes = Buffer.concat(frames.map(({ type, stream, payload }) => frame(type, 0, stream, payload)))
      const reader = new FrameReader()
      const read: Sent[] = []
      let data: Uint8Array[] = []
      let turn = 0
      const readSome = (count: number) => {
        for (let step = 0; step < count; step++) {
          const { type, stream } = reader
          switch (reader.next()) {
            case Step.more:
              return
            case Step.piece:
              data.push(Uint8Array.from(reader.bytes))
              break
            case Step.dataEnd:
              read.push({ type, stream, payload: Uint8Array.from(Buffer.concat(data)) })
              data = []
              break
            case Step.payload:
              read.push({ type, stream, payload: Uint8Array.from(reader.bytes) })
          }
        }
      }
      const shared = Buffer.alloc(400)
      for (let at = 0; at < bytes.length; turn++) {
        const length = Math.min(lengths[turn % lengths.length]!, bytes.length - at)
        bytes.copy(shared, 0, at, at + length)
        at += length
        reader.push(shared.subarray(0, length))
        readSome(steps[turn % steps.length]!)
        reader.keep()
        shared.fill(0xee)
      }
      readSome(Number.POSITIVE_INFINITY)
      assert.deepEqual(read, frames)
    },
  )
  fc.assert(property, timeBox(20_000, 3_000))
})
