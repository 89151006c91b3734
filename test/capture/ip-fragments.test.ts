import assert from 'node:assert/strict'
import { test } from 'tap'
import { IpFragments } from '../../src/capture/ip-fragments.ts'
import { memoryInUse } from './memory.ts'

const PART = Buffer.from('12345678')

test('ip fragments: of more unfinished datagrams than there is room for, the oldest gives way', async () => {
  const fragments = new IpFragments()
  for (let id = 0; id <= 512; id++) assert.equal(fragments.add(`${id}`, 0, true, PART), null)
  assert.equal(fragments.add('0', 8, false, PART), null)
  assert.equal(fragments.add('512', 8, false, PART)?.toString(), '1234567812345678')
  // A whole one makes room.
  assert.equal(fragments.add('2', 8, false, PART)?.toString(), '1234567812345678')
})

test('ip fragments: empty ones and those past the end of any packet are passed over', async () => {
  const fragments = new IpFragments()
  assert.equal(fragments.add('a', 0, false, Buffer.alloc(0)), null)
  assert.equal(fragments.add('a', 65_528, false, PART), null)
  assert.equal(fragments.add('a', 0, true, Buffer.alloc(65_520)), null)
  assert.equal(fragments.add('a', 65_520, false, PART)?.length, 65_528)
})

test('ip fragments: no capture makes them hold more than that many datagrams', async () => {
  const fragments = new IpFragments()
  const before = memoryInUse()
  const large = Buffer.alloc(64_000)
  for (let time = 0; time < 5; time++) {
    for (let id = 0; id < 512; id++) fragments.add(`${id}`, 8 * (time + 1), true, large)
  }
  const held = memoryInUse() - before
  assert.ok(held < 512 * 70_000, `${held} bytes`)
  assert.equal(fragments.add('0', 0, true, PART), null)
})
