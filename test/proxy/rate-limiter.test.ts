import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { RateLimiter } from '../../src/proxy/request/rate-limiter.ts'
import { timeBox } from '../time-box.ts'

const NOW_MS = 1_763_700_000_123

test('a burst comes through at once, and then one request in each part of the window', async () => {
  const limiter = new RateLimiter()
  const limit = { requests: 10, windowMs: 60_000, burst: 3 }
  const waits = Array.from({ length: 5 }, () => limiter.take('a', limit, NOW_MS))
  assert.deepEqual(waits, [0, 0, 0, 6000, 6000])
  assert.equal(limiter.take('a', limit, NOW_MS + 5999), 1)
  assert.equal(limiter.take('a', limit, NOW_MS + 6000), 0)
  assert.equal(limiter.take('a', limit, NOW_MS + 6000), 6000)
})

test('a client has its full burst again after a window, and no more', async () => {
  const limiter = new RateLimiter()
  const limit = { requests: 4, windowMs: 1000, burst: 4 }
  for (const nowMs of [NOW_MS, NOW_MS + 1000, NOW_MS + 100_000]) {
    const waits = Array.from({ length: 5 }, () => limiter.take('a', limit, nowMs))
    assert.deepEqual(waits, [0, 0, 0, 0, 250])
  }
})

test('keys are counted apart', async () => {
  const limiter = new RateLimiter()
  const limit = { requests: 1, windowMs: 1000, burst: 1 }
  assert.deepEqual(
    ['a', 'b', 'a'].map((key) => limiter.take(key, limit, NOW_MS)),
    [0, 0, 1000],
  )
})

test('a refused request does not make the wait longer', async () => {
  const limiter = new RateLimiter()
  const limit = { requests: 1, windowMs: 1000, burst: 1 }
  limiter.take('a', limit, NOW_MS)
  for (let i = 0; i < 999; i++) assert.equal(limiter.take('a', limit, NOW_MS + i), 1000 - i)
  assert.equal(limiter.take('a', limit, NOW_MS + 1000), 0)
})

test('time that goes back costs a client at most one wait', async () => {
  const limiter = new RateLimiter()
  const limit = { requests: 10, windowMs: 60_000, burst: 2 }
  limiter.take('a', limit, NOW_MS)
  limiter.take('a', limit, NOW_MS)
  const backMs = NOW_MS - 3_600_000
  assert.equal(limiter.take('a', limit, backMs), 6000)
  assert.equal(limiter.take('a', limit, NOW_MS + 6000), 0)
})

test('a limit that becomes smaller holds from then on', async () => {
  const limiter = new RateLimiter()
  for (let i = 0; i < 100; i++) limiter.take('a', { requests: 1, windowMs: 60_000, burst: 100 }, NOW_MS)
  assert.equal(limiter.take('a', { requests: 1, windowMs: 1000, burst: 1 }, NOW_MS), 1000)
})

test('of more keys than there is room for, those seen last are known', async () => {
  const limiter = new RateLimiter(2)
  const limit = { requests: 1, windowMs: 1000, burst: 1 }
  for (const key of ['a', 'b', 'c']) assert.equal(limiter.take(key, limit, NOW_MS), 0)
  assert.equal(limiter.take('c', limit, NOW_MS), 1000)
  assert.equal(limiter.take('a', limit, NOW_MS), 0)
})

test('who is refused again and again is not forgotten for others that come meanwhile', async () => {
  const limiter = new RateLimiter(10)
  const limit = { requests: 1, windowMs: 60_000, burst: 1 }
  assert.equal(limiter.take('a', limit, NOW_MS), 0)
  for (let i = 0; i < 1000; i++) {
    limiter.take(`other ${i}`, limit, NOW_MS)
    assert.equal(limiter.take('a', limit, NOW_MS), 60_000)
  }
})

test('whatever the limit: a burst at first, no more than the limit ever, and who waits as told comes through', async () => {
  const plan = fc.record({
    requests: fc.integer({ min: 1, max: 1000 }),
    windowMs: fc.integer({ min: 1, max: 86_400_000 }),
    burst: fc.integer({ min: 1, max: 50 }),
    startMs: fc.integer({ min: 0, max: NOW_MS }),
    steps: fc.array(fc.integer({ min: 0, max: 100_000 }), { maxLength: 50 }),
  })
  const property = fc.property(plan, ({ steps, startMs, ...limit }) => {
    const limiter = new RateLimiter()
    for (let i = 0; i < limit.burst; i++) assert.equal(limiter.take('a', limit, startMs), 0, `burst ${i}`)
    let nowMs = startMs
    let passed = limit.burst
    for (const step of steps) {
      nowMs += step
      const waitMs = limiter.take('a', limit, nowMs)
      if (waitMs === 0) passed++
      else {
        nowMs += waitMs
        assert.equal(limiter.take('a', limit, nowMs), 0, `after ${waitMs} ms`)
        passed++
      }
      // What is less than a hundredth of a millisecond early is let through: see ROUNDING_MS.
      const allowed = limit.burst + ((nowMs - startMs + 0.01) * limit.requests) / limit.windowMs
      assert.ok(passed <= allowed + 0.01 * passed + 1e-6, `${passed} of ${allowed}`)
    }
  })
  fc.assert(property, timeBox(20_000, 2_000))
})
