import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { ByteQueue } from '../../src/wire/byte-queue.ts'
import { BUDGET } from '../vectors/arbitraries.ts'
import { bytesCopied } from './bytes-copied.ts'

type Step =
  | { readonly kind: 'push'; readonly chunk: Uint8Array }
  /** A share of the available bytes, in 256ths. */
  | { readonly kind: 'take' | 'skip'; readonly share: number }
  | { readonly kind: 'keep' }
  | { readonly kind: 'clear' }

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('push'),
        chunk: fc.uint8Array({ maxLength: 400, size: '+2' }),
      }),
    },
    { weight: 6, arbitrary: fc.record({ kind: fc.constantFrom('take', 'skip'), share: fc.nat(256) }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('keep') }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('clear') }) },
  ) as fc.Arbitrary<Step>,
  { maxLength: 60, size: '+1' },
)

test('holds what was pushed and not read, whatever its owner does with a chunk after keep()', async () => {
  fc.assert(
    fc.property(steps, (sequence) => agrees(sequence)),
    BUDGET,
  )
})

/** Against a Buffer of which nothing is shared with anyone. */
function agrees(sequence: readonly Step[]): void {
  const queue = new ByteQueue()
  let model = Buffer.alloc(0)
  let lent: Uint8Array[] = []
  let views: { readonly view: Uint8Array; readonly bytes: Buffer }[] = []
  for (const step of sequence) {
    if (step.kind === 'push') {
      for (const { view, bytes } of views)
        assert.deepEqual(Buffer.from(view), bytes, 'a view holds until the next push')
      views = []
      const chunk = Uint8Array.from(step.chunk)
      lent.push(chunk)
      queue.push(chunk)
      model = Buffer.concat([model, step.chunk])
    } else if (step.kind === 'keep') {
      queue.keep()
      views = [] // those into a chunk are its owner's again
      for (const chunk of lent) chunk.fill(0xee)
      lent = []
    } else if (step.kind === 'clear') {
      queue.clear()
      model = model.subarray(model.length)
    } else {
      const length = Math.floor((model.length * step.share) / 256)
      const bytes = model.subarray(0, length)
      if (step.kind === 'take') views.push({ view: queue.take(length), bytes })
      else queue.skip(length)
      model = model.subarray(length)
    }
    assert.equal(queue.length, model.length)
    assert.deepEqual(Buffer.from(queue.rest()), model)
    if (model.length < 3) continue
    const last = model.length - 3
    assert.deepEqual(
      [queue.byteAt(last), queue.u16At(last), queue.u24At(last)],
      [model[last], model.readUInt16BE(last), model.readUIntBE(last, 3)],
    )
  }
  for (const { view, bytes } of views) assert.deepEqual(Buffer.from(view), bytes)
}

test('copies nothing for a reader that keeps up', async () => {
  const queue = new ByteQueue()
  const chunk = Buffer.alloc(16_384, 1)
  const copied = bytesCopied(() => {
    for (let i = 0; i < 100; i++) {
      queue.push(chunk)
      assert.equal(queue.take(chunk.length).buffer, chunk.buffer)
      queue.keep()
    }
  })
  assert.equal(copied, 0)
})

test('copies each byte a few times at most, a byte at a time, without a reader', async () => {
  const queue = new ByteQueue()
  const copied = bytesCopied(() => {
    for (let i = 0; i < 50_000; i++) {
      queue.push(Uint8Array.of(i))
      queue.keep()
    }
  })
  assert.ok(copied >= 50_000 && copied < 4 * 50_000, `${copied} bytes copied`)
})

test('copies each byte a few times at most when a reader lags behind by any number of bytes', async () => {
  for (let lag = 1; lag < 600; lag++) {
    const queue = new ByteQueue()
    const copied = bytesCopied(() => {
      for (let i = 0; i < 5 * lag; i++) {
        queue.push(Uint8Array.of(i))
        queue.keep()
        if (queue.length > lag) queue.skip(1)
      }
    })
    assert.ok(copied < 4 * 5 * lag + 300, `${copied} bytes copied, ${lag} behind`)
  }
})
