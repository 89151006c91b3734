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
    assert.equal(body.unread, null, 'it is not whole')
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

test('a body that came whole can be looked at, and is read afterwards as ever', async () => {
  const property = fc.asyncProperty(fc.array(fc.nat(5_000), { maxLength: 6 }), async (sizes) => {
    const body = new FedBody(() => undefined)
    const sent = Buffer.concat(
      sizes.map((size, index) => {
        const chunk = Buffer.alloc(size, index + 1)
        body.feed(chunk)
        assert.equal(body.unread, null)
        return Buffer.from(chunk)
      }),
    )
    body.finish()
    const [first, again] = [body.unread, body.unread]
    assert.deepEqual(first, again)
    // In several pieces it is not worth the effort.
    if (sizes.every((size) => size < 4_096) && sent.length > 0) assert.ok(first !== null)
    if (first !== null) assert.ok(sent.equals(first))
    const got: Buffer[] = []
    for await (const piece of body) got.push(piece)
    assert.ok(sent.equals(Buffer.concat(got)))
    assert.equal(body.unread, null, 'it was read')
  })
  await fc.assert(property, { numRuns: 200 })
})

test('a body that has a reader cannot be looked at', async () => {
  for (const begin of [
    (body: FedBody) => void body.on('data', () => undefined),
    (body: FedBody) => void body.pause(),
    (body: FedBody) => void body.read(1),
    (body: FedBody) => void body.destroy(),
  ]) {
    const body = new FedBody(() => undefined)
    body.feed(Buffer.from('{}'))
    begin(body)
    body.finish()
    assert.equal(body.unread, null, String(begin))
  }
})

function total(pieces: readonly Buffer[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0)
}
