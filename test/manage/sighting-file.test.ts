import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import type { Log } from '../../src/shared/log.ts'
import { SightingFile } from '../../src/manage/intake/sighting-file.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { sighting } from '../contract/bus.ts'

test('a line of JSON each, in order, behind what was there, and for nobody else to read', async (t) => {
  const { file, make } = workbench(t)
  for (const numbers of [[1, 2], [3]]) {
    const sightings = make(1_000_000)
    sightings.append(numbers.map(sighting))
    sightings.append([])
    await sightings.close()
    assert.equal(sightings.counts.written, numbers.length)
  }
  assert.deepEqual(read(file), [1, 2, 3].map(sighting))
  assert.equal(statSync(file).mode & 0o777, 0o600)
})

test('a file that is full is kept once, and two are all there ever is', async (t) => {
  const { file, folder, make } = workbench(t)
  const bytesMax = 3 * JSON.stringify(sighting(1)).length
  const sightings = make(bytesMax)
  for (let number = 1; number <= 9; number++) {
    sightings.append([sighting(number)])
    await settled(sightings, number)
  }
  await sightings.close()
  assert.deepEqual(readdirSync(folder).sort(), ['s.jsonl', 's.jsonl.1'])
  assert.deepEqual(
    [...read(`${file}.1`), ...read(file)].map(({ snapshot }) => snapshot),
    [7, 8, 9],
  )
  assert.ok(statSync(`${file}.1`).size <= bytesMax)
})

test('one that was full before the start is kept, too', async (t) => {
  const { file, make } = workbench(t)
  writeFileSync(file, 'x'.repeat(2000))
  const sightings = make(1000)
  sightings.append([sighting(1)])
  await sightings.close()
  assert.equal(statSync(`${file}.1`).size, 2000)
  assert.deepEqual(read(file), [sighting(1)])
})

test('an error of the disk is said once and counted, and is over when the disk is there again', async (t) => {
  const { folder, errors, log } = workbench(t)
  const file = join(folder, 'later', 's.jsonl')
  const sightings = new SightingFile({ file, bytesMax: 1_000_000 }, log)
  for (const number of [1, 2, 3]) {
    sightings.append([sighting(number)])
    await settled(sightings, number)
  }
  assert.deepEqual([errors.length, sightings.counts], [1, { written: 0, dropped: 3 }])
  mkdirSync(join(folder, 'later'))
  sightings.append([sighting(4)])
  await settled(sightings, 4)
  rmSync(join(folder, 'later'), { recursive: true })
  await sightings.close()
  assert.deepEqual([errors.length, sightings.counts], [1, { written: 1, dropped: 3 }])
})

test('whoever gives never waits, and what there is no room for is counted', async (t) => {
  const { file, make } = workbench(t)
  const sightings = make(1_000_000_000)
  const many = Array.from({ length: 40_000 }, () => sighting(1))
  sightings.append(many)
  assert.equal(sightings.counts.written, 0)
  await sightings.close()
  assert.equal(sightings.counts.written + sightings.counts.dropped, 40_000)
  assert.equal(sightings.counts.written, 32_768)
  assert.equal(read(file).length, 32_768)
})

/** Until so many have been written or dropped. */
async function settled(sightings: SightingFile, count: number): Promise<void> {
  while (sightings.counts.written + sightings.counts.dropped < count) {
    await new Promise((resolve) => setImmediate(resolve))
  }
}

function read(file: string): Sighting[] {
  const lines = readFileSync(file, 'utf8').split('\n')
  assert.equal(lines.pop(), '')
  return lines.map((line) => JSON.parse(line))
}

function workbench(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-sightings-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 's.jsonl')
  const errors: string[] = []
  const log = { error: (what: string) => errors.push(what) } as unknown as Log
  return { folder, file, errors, log, make: (bytesMax: number) => new SightingFile({ file, bytesMax }, log) }
}
