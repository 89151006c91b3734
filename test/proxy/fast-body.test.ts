import assert from 'node:assert/strict'
import { test } from 'tap'
import { FastBody } from '../../src/proxy/http/fast-body.ts'
import { Random } from '../fuzz/mutate.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Feeds a body while its reader stops and goes on by chance, and says in how many pieces it came. */
async function readByChance(random: Random): Promise<number> {
  const whole = Buffer.from(Array.from({ length: 1 + random.below(5000) }, () => random.below(256)))
  let isWanted = true
  const body = new FastBody(whole.length, () => {
    isWanted = true
  })
  const came: Uint8Array[] = []
  let hasEnded = false
  body.on('data', (bytes: Uint8Array) => {
    assert.ok(!body.isPaused(), 'nothing comes while the reader has stopped')
    assert.ok(!hasEnded, 'nothing comes behind the end')
    came.push(bytes)
    if (random.below(4) === 0) body.pause()
  })
  body.on('end', () => {
    hasEnded = true
  })
  while (!body.isWhole) {
    const at = whole.length - body.left
    if (random.below(3) === 0) body.resume()
    if (random.below(3) === 0) body.pause()
    if (isWanted) isWanted = body.feed(whole.subarray(at, at + 1 + random.below(400)))
    if (random.below(3) === 0) await turn()
  }
  while (!hasEnded) {
    body.resume()
    await turn()
  }
  assert.deepEqual(Buffer.concat(came), whole)
  return came.length
}

test('whenever its reader stops and goes on, a body comes in order and whole', async () => {
  const random = new Random(20_261_124)
  let pieces = 0
  for (let round = 0; round < 300; round++) pieces += await readByChance(random)
  assert.ok(pieces > 600, `${pieces}`)
})

test('it asks to wait when its reader has stopped and it is full, and says when there is room', async () => {
  let wanted = 0
  const body = new FastBody(200_000, () => wanted++)
  body.on('data', () => {})
  await turn()
  assert.ok(body.feed(Buffer.alloc(50_000)))
  body.pause()
  assert.ok(body.feed(Buffer.alloc(50_000)))
  assert.equal(body.feed(Buffer.alloc(50_000)), false)
  const before = wanted
  body.resume()
  while (wanted === before) await turn()
  assert.ok(body.feed(Buffer.alloc(50_000)))
  assert.ok(body.isWhole)
})

test('drops a body that is no longer read', async () => {
  const body = new FastBody(100, () => {})
  body.on('data', () => assert.fail('it has gone'))
  body.destroy()
  assert.ok(body.feed(Buffer.alloc(100)))
  assert.ok(body.isWhole)
})
