import assert from 'node:assert/strict'
import { appendFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import type { Sighting } from '../../src/plane/sighting.ts'
import { SightingSpool } from '../../src/plane/sighting-spool.ts'
import { sighting } from '../contract/bus.ts'

test('what waits comes out in its order, also after a restart, and is gone then', async (t) => {
  const folder = await temporary(t)
  const spool = await SightingSpool.open(folder, MANY)
  for (let number = 0; number < 20; number++) await spool.append([sighting(number)])
  assert.equal(spool.isEmpty, false)
  await spool.close()
  const next = await SightingSpool.open(folder, MANY)
  await next.append([sighting(20)])
  assert.deepEqual(await drained(next), numbers(0, 21))
  assert.deepEqual([next.isEmpty, next.bytes, await readdir(folder)], [true, 0, []])
  assert.deepEqual(await drained(next), [])
})

test('what could not be sent stays', async (t) => {
  const spool = await SightingSpool.open(await temporary(t), MANY)
  for (let number = 0; number < 5; number++) await spool.append([sighting(number)])
  let sent = 0
  await assert.rejects(
    spool.drain(async () => {
      if (++sent > 2) throw new Error('gone')
    }),
  )
  assert.equal(spool.isEmpty, false)
  // Those that were sent before it failed come again: their ids say so.
  assert.deepEqual(await drained(spool), numbers(0, 5))
})

test('who appends while it drains is not lost', async (t) => {
  const spool = await SightingSpool.open(await temporary(t), MANY)
  await spool.append([sighting(0)])
  const out: number[] = []
  let next = 1
  await spool.drain(async (batch) => {
    out.push(...batch.map(({ snapshot }) => snapshot))
    if (next < 6) await spool.append([sighting(next++)])
  })
  assert.deepEqual(out, numbers(0, 6))
})

test('a full spool leaves Sightings with the caller', async (t) => {
  const spool = await SightingSpool.open(await temporary(t), 1_500)
  await spool.append([sighting(0)])
  await spool.append([sighting(1)])
  await assert.rejects(
    (async () => {
      for (let number = 2; number < 20; number++) await spool.append([sighting(number)])
    })(),
    { code: 'SPOOL_FULL' },
  )
  const before = await drained(spool)
  assert.deepEqual(before, numbers(0, before.length))
  await spool.append([sighting(50)])
  assert.deepEqual(await drained(spool), [50])
})

test('what a crash has cut, or the disk has changed, is left out and counted; the rest comes', async (t) => {
  const folder = await temporary(t)
  const spool = await SightingSpool.open(folder, MANY)
  await spool.append([sighting(0)])
  await spool.close()
  const [name] = await readdir(folder)
  const length = Buffer.from([0, 0, 0, 4])
  await appendFile(
    join(folder, name!),
    Buffer.concat([length, Buffer.from('junk'), length, Buffer.from('ab')]),
  )
  await writeFile(join(folder, 'notes.txt'), 'not ours')
  const next = await SightingSpool.open(folder, MANY)
  await next.append([sighting(1)])
  assert.deepEqual(await drained(next), [0, 1])
  assert.equal(next.counts.unreadable, 1)
  assert.deepEqual(await readdir(folder), ['notes.txt'])
})

test('reports a full disk', async (t) => {
  const folder = await temporary(t)
  const spool = await SightingSpool.open(folder, MANY)
  await rm(folder, { recursive: true })
  await assert.rejects(spool.append([sighting(0)]), { code: 'SPOOL_UNWRITABLE' })
  assert.equal(spool.isEmpty, true)
})

async function drained(spool: SightingSpool): Promise<number[]> {
  const out: Sighting[] = []
  await spool.drain(async (batch) => void out.push(...batch))
  return out.map(({ snapshot }) => snapshot)
}

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index)
}

async function temporary(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-spool-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

const MANY = 10_000_000
