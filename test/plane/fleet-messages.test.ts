import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { zstdCompress } from 'node:zlib'
import fc from 'fast-check'
import { after, test } from 'tap'
import { compiled } from '../../src/runtime/signatures/signature-compiler.ts'
import { Fault } from '../../src/shared/fault.ts'
import { type Announcement, readAnnouncement, writeAnnouncement } from '../../src/plane/announcement.ts'
import { readHeartbeat, writeHeartbeat } from '../../src/plane/heartbeat.ts'
import { packSightings, unpackSightings } from '../../src/plane/sighting-batch.ts'
import { KnowledgeReader } from '../../src/plane/signature-set.ts'
import { makeSnapshot } from '../../src/plane/snapshot.ts'
import { applyDelta, grow, makeDelta, shrink } from '../../src/plane/snapshot-delta.ts'
import { digestOf, packSnapshot, unpackSnapshot } from '../../src/plane/snapshot-package.ts'
import { sighting } from '../contract/bus.ts'
import { HEARTBEAT } from './heartbeat.ts'

const folder = await mkdtemp(join(tmpdir(), 'gatehouse-messages-'))
after(() => rm(folder, { recursive: true, force: true }))

test('an announcement is read as it was written, cut nowhere', async () => {
  const announcement: Announcement = {
    ...{ number: 7, hash: 'ab', madeAtMs: 1_800_000_000_000, digest: 'cd'.repeat(32), bytes: 9 },
    delta: { from: 'ef'.repeat(32), bytes: Buffer.from('a\nchange') },
  }
  const message = writeAnnouncement(announcement)
  assert.deepEqual(readAnnouncement(message), announcement)
  assert.equal(readAnnouncement(writeAnnouncement({ ...announcement, delta: null })).delta, null)
  const line = message.indexOf(0x0a)
  for (let end = 0; end < line; end++) refused(() => readAnnouncement(message.subarray(0, end)))
  for (const [name, value] of [
    ['format', 2],
    ['number', -1],
    ['number', 1.5],
    ['digest', '../../etc/passwd'],
    ['bytes', '9'],
    ['from', 7],
  ] as const)
    refused(() => readAnnouncement(changed(message, name, value)))
  // A later version may say more.
  assert.equal(readAnnouncement(changed(message, 'more', true)).number, 7)
})

test('a heartbeat is read as it was written; whatever else comes is refused by name', async () => {
  assert.deepEqual(readHeartbeat(writeHeartbeat(HEARTBEAT)), HEARTBEAT)
  const bytes = writeHeartbeat(HEARTBEAT)
  for (let end = 0; end < bytes.length; end++) refused(() => readHeartbeat(bytes.subarray(0, end)))
  for (const [name, value, said] of [
    ['id', '../x', 'id'],
    ['configHash', 'x', 'configHash'],
    ['startedAtMs', -1, 'startedAtMs'],
    ['workers', Array.from({ length: 257 }, () => HEARTBEAT.workers[0]), 'workers'],
    ['workers', [{ ...HEARTBEAT.workers[0], state: 'lost' }], 'worker'],
    ['source', 'elsewhere', 'nowhere'],
    ['snapshot', [], 'snapshot'],
    ['sightings', null, 'sightings'],
  ] as const) {
    const message = Buffer.from(JSON.stringify({ ...JSON.parse(bytes.toString()), [name]: value }))
    assert.throws(
      () => readHeartbeat(message),
      (error: Error) => error instanceof Fault && error.message.includes(said),
    )
  }
  refused(() => readHeartbeat(Buffer.alloc(300_000, 0x20)))
  const long = writeHeartbeat({ ...HEARTBEAT, host: 'x'.repeat(10_000), everyMs: 10 ** 12 })
  assert.deepEqual([readHeartbeat(long).host.length, readHeartbeat(long).everyMs], [512, 600_000])
})

test('a Snapshot with signatures goes from machine to machine, and no part of it is taken for another', async () => {
  const sources = { feeds: [], accepted: '', paths: [], ranges: [], weightsFile: null }
  const { set } = await compiled({ sources, folder: join(folder, 'here'), newest: null, copies: [] })
  const document = makeSnapshot(3, { rules: [{ name: 'a', when: { path: '/' }, action: 'tag' }] }, 5, set)
  const bytes = await packSnapshot(document)
  const there = await unpackSnapshot(bytes, join(folder, 'there'), true)
  assert.equal(there.signatures!.index.path.startsWith(join(folder, 'there')), true)
  assert.deepEqual(await readFile(there.signatures!.index.path), await readFile(set!.index.path))
  const said = (each: typeof document) => {
    return JSON.stringify({ ...each, signatures: { ...each.signatures, index: null } })
  }
  assert.ok(said(there) === said(document))
  assert.ok((await new KnowledgeReader().read(there.signatures!)).fingerprints !== null)
  const end = bytes.indexOf(0x0a)
  for (const cut of [0, 1, end - 1, end, end + 1, bytes.length - 1])
    await assert.rejects(unpackSnapshot(bytes.subarray(0, cut), join(folder, 'cut'), true), {
      code: 'SNAPSHOT_INVALID',
    })
  const other = Buffer.from(bytes)
  other[bytes.length - 7]! ^= 1
  await assert.rejects(unpackSnapshot(other, join(folder, 'cut'), true), { code: 'SNAPSHOT_INVALID' })
  const escaping = changed(bytes, 'signatures', { ...there.signatures, hash: '../../out' })
  await assert.rejects(unpackSnapshot(escaping, join(folder, 'cut'), true), { code: 'SNAPSHOT_INVALID' })
  await assert.rejects(
    unpackSnapshot(changed(bytes, 'format', 2), folder, true),
    /format 2, and this version reads 1/,
  )
})

test('whatever was changed, the change makes one of the other', async () => {
  const edits = fc.array(fc.tuple(fc.nat(2_500_000), fc.uint8Array({ maxLength: 300 }), fc.nat(300)), {
    maxLength: 5,
  })
  const base = Buffer.concat([Buffer.from('x'.repeat(100_000)), randomBytes(2_200_000)])
  await fc.assert(
    fc.asyncProperty(edits, async (list) => {
      let to = base
      for (const [at, put, gone] of list)
        to = Buffer.concat([to.subarray(0, at), put, to.subarray(Math.min(to.length, at + gone))])
      const delta = await makeDelta(base, to)
      assert.equal(digestOf(await applyDelta(base, delta, to.length)), digestOf(to))
      assert.ok(delta.length < 5_000, `${delta.length}`)
    }),
    { interruptAfterTimeLimit: 4_000, numRuns: 40 },
  )
})

test('a change that does not fit is refused, and nothing grows beyond what was said', async () => {
  const from = randomBytes(3_000)
  const to = Buffer.concat([from, Buffer.from('more')])
  const delta = await makeDelta(from, to)
  for (let end = 0; end < delta.length; end++)
    await assert.rejects(applyDelta(from, delta.subarray(0, end), to.length), { code: 'SNAPSHOT_INVALID' })
  for (const bytes of [0, 1, to.length - 1, to.length + 1, 2 ** 31, 2 ** 40])
    await assert.rejects(applyDelta(from, delta, bytes), { code: 'SNAPSHOT_INVALID' })
  const shrunk = await shrink(Buffer.alloc(50_000_000))
  await assert.rejects(grow(shrunk, 1_000), { code: 'SNAPSHOT_INVALID' })
  await assert.rejects(grow(shrunk.subarray(0, 100), 50_000_000), { code: 'SNAPSHOT_INVALID' })
  assert.equal((await grow(await shrink(to), to.length)).equals(to), true)
  assert.equal((await grow(await shrink(Buffer.alloc(0)), 0)).length, 0)
})

test('Sightings travel in messages that are not too long, in their order', async () => {
  const long = Array.from({ length: 40 }, (_, number) => ({
    ...sighting(number),
    path: randomBytes(2_000).toString('hex'),
  }))
  const packed = await packSightings(long, 20_000)
  assert.ok(packed.length > 2 && packed.every(({ bytes }) => bytes.length <= 20_000))
  assert.deepEqual((await Promise.all(packed.map(({ bytes }) => unpackSightings(bytes)))).flat(), long)
  assert.deepEqual(await packSightings([long[0]!], 100), []) // it fits nowhere
  for (const junk of [Buffer.alloc(0), randomBytes(50), packed[0]!.bytes.subarray(0, 90)])
    await assert.rejects(unpackSightings(junk), { code: 'SIGHTINGS_INVALID' })
  const text = await promisify(zstdCompress)(Buffer.from('{"a":1}'))
  await assert.rejects(unpackSightings(text), /is not a list/)
  const bomb = await promisify(zstdCompress)(Buffer.alloc(300 * 1024 ** 2))
  await assert.rejects(unpackSightings(bomb), { code: 'SIGHTINGS_INVALID' })
})

function refused(read: () => unknown): void {
  assert.throws(read, (error) => error instanceof Fault)
}

/** The same with another value in its line of JSON. */
function changed(message: Buffer, name: string, value: unknown): Buffer {
  const end = message.indexOf(0x0a)
  const line = { ...JSON.parse(message.toString('utf8', 0, end)), [name]: value }
  return Buffer.concat([Buffer.from(JSON.stringify(line)), message.subarray(end)])
}
