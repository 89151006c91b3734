import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { test } from 'tap'
import { FedBody } from '../../src/proxy/http/fed-body.ts'

const CHUNK_BYTES = 65_536

test('a body that is not read keeps none of the chunks of which it has a byte', async () => {
  const body = new FedBody(() => undefined)
  for (let count = 0; count < 5000; count++) {
    const chunk = Buffer.alloc(CHUNK_BYTES, 'x')
    body.feed(chunk.subarray(count, count + 1))
    chunk.fill('-') // as if it were used for something else
  }
  body.finish()
  const pieces: Buffer[] = []
  for await (const piece of body) pieces.push(piece)
  assert.equal(Buffer.concat(pieces).toString(), 'x'.repeat(5000))
  assert.ok(pieces.length < 10, `${pieces.length} pieces`)
})

test('the same of a body whose reader has paused', async () => {
  const body = new FedBody(() => undefined)
  const pieces: Buffer[] = []
  body.on('data', (piece: Buffer) => pieces.push(Buffer.from(piece)))
  await setImmediate()
  body.feed(Buffer.from('before '))
  body.pause()
  for (let count = 0; count < 5000; count++) {
    const chunk = Buffer.alloc(CHUNK_BYTES, 'x')
    body.feed(chunk.subarray(0, 1))
    chunk.fill('-')
  }
  body.resume()
  body.finish()
  await new Promise((resolve) => body.on('end', resolve))
  assert.equal(Buffer.concat(pieces).toString(), `before ${'x'.repeat(5000)}`)
  assert.ok(pieces.length < 10, `${pieces.length} pieces`)
})

type Act =
  | { readonly kind: 'feed'; readonly size: number }
  | { readonly kind: 'pause' | 'resume' | 'turn' | 'attach' }

const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ kind: fc.constant('feed' as const), size: fc.oneof(fc.nat(3), fc.nat(40_000)) }),
  fc.record({
    kind: fc.constantFrom('pause' as const, 'resume' as const, 'turn' as const, 'attach' as const),
  }),
)

test('a body has its bytes in order and its end once, however it is read', async () => {
  const property = fc.asyncProperty(fc.array(act, { maxLength: 40 }), async (acts) => {
    let wanted = 0
    const body = new FedBody(() => wanted++)
    const sent: Buffer[] = []
    const got: Buffer[] = []
    let ends = 0
    let isAttached = false
    const attach = () => {
      if (isAttached) return
      isAttached = true
      body.on('data', (piece: Buffer) => got.push(Buffer.from(piece)))
      body.on('end', () => ends++)
    }
    let isFull = false
    let wantedBefore = 0
    for (const { kind, ...more } of acts) {
      if (kind === 'feed') {
        const bytes = Buffer.alloc((more as { size: number }).size, sent.length + 1)
        sent.push(bytes)
        const hasRoom = body.feed(bytes)
        if (!hasRoom && !isFull) wantedBefore = wanted
        isFull = !hasRoom
      } else if (kind === 'pause') body.pause()
      else if (kind === 'resume') body.resume()
      else if (kind === 'attach') attach()
      else await setImmediate()
    }
    attach()
    body.resume()
    await setImmediate()
    await setImmediate()
    if (isFull) assert.ok(wanted > wantedBefore, 'more is wanted')
    body.finish()
    await setImmediate()
    await setImmediate()
    assert.equal(ends, 1)
    assert.ok(Buffer.concat(sent).subarray(-total(got)).equals(Buffer.concat(got)) || total(got) === 0)
  })
  await fc.assert(property, { numRuns: 300 })
})

function total(pieces: readonly Buffer[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0)
}
