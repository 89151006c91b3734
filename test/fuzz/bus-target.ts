import assert from 'node:assert/strict'
import { createHash, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { Fault } from '../../src/shared/fault.ts'
import { readAnnouncement, writeAnnouncement } from '../../src/plane/announcement.ts'
import { FeedFault, feedKeyOf, openFeed, parseFeedPrivateKey } from '../../src/plane/feed.ts'
import { type Heartbeat, readHeartbeat, writeHeartbeat } from '../../src/plane/heartbeat.ts'
import { parseSighting } from '../../src/plane/sighting-document.ts'
import { unpackSightings } from '../../src/plane/sighting-batch.ts'
import { KnowledgeReader } from '../../src/plane/signature-set.ts'
import { parseSnapshot, type SnapshotDocument } from '../../src/plane/snapshot.ts'
import { applyDelta, grow } from '../../src/plane/snapshot-delta.ts'
import { packSnapshot, unpackSnapshot } from '../../src/plane/snapshot-package.ts'
import { HEARTBEAT } from '../plane/heartbeat.ts'
import { fixedKey } from './fixed-key.ts'

/**
 * Whatever comes by the bus, or from a publisher, is a message or a Fault. What was read is the same when it is written
 * again, and nothing grows beyond what was said.
 */
export async function bus(bytes: Buffer): Promise<void> {
  sameAgain(bytes, readAnnouncement, writeAnnouncement)
  sameAgain(bytes, readHeartbeat, writeHeartbeat)
  const text = bytes.toString('utf8')
  const found = parseSighting(text)
  if (typeof found !== 'string') assert.deepEqual(parseSighting(JSON.stringify(found)), found)
  else assert.notEqual(found, '')
  feed(bytes)
  await orFault(batch(bytes))
  await orFault(batch(zstdCompressSync(bytes)))
  await orFault(snapshot(bytes))
  await orFault(knowledge(text))
  const length = bytes.length === 0 ? 0 : bytes[0]! * 16
  await orFault(applyDelta(BEFORE, bytes, length).then((made) => assert.equal(made.length, length)))
  await orFault(grow(bytes, length).then((made) => assert.equal(made.length, length)))
}

function sameAgain<Message>(
  bytes: Buffer,
  read: (bytes: Buffer) => Message,
  write: (message: Message) => Buffer,
): void {
  let message: Message
  try {
    message = read(bytes)
  } catch (error) {
    return isFault(error)
  }
  assert.deepEqual(read(write(message)), message)
}

async function batch(bytes: Uint8Array): Promise<void> {
  const list = await unpackSightings(bytes)
  for (const each of list) assert.notEqual(parseSighting(JSON.stringify(each ?? null)), '')
}

async function snapshot(bytes: Buffer): Promise<void> {
  // No index has the digest that it says, so that nothing is written.
  const read = await unpackSnapshot(bytes, 'nowhere', true)
  const again = await unpackSnapshot(await packSnapshot(read), 'nowhere', true)
  assert.deepEqual(again, read)
  assert.equal(parseSnapshot(read).number, read.number)
}

/** As the signatures of a Snapshot; there is no file of an index. */
async function knowledge(piece: string): Promise<void> {
  const said = { pieces: [piece], weights: null, fingerprints: '' }
  const hash = createHash('sha256').update('null').update(piece).digest('hex')
  await new KnowledgeReader().read({ ...said, hash, index: { path: 'nowhere', bytes: 0, sha256: '' } })
  assert.fail('there is no index')
}

/** Signed by the publisher: what is in it may be anything all the same. */
function feed(payload: Buffer): void {
  const head = Buffer.from(`DSSEv1 ${FEED_TYPE.length} ${FEED_TYPE} ${payload.length} `)
  const sig = sign(null, Buffer.concat([head, payload]), PRIVATE_KEY).toString('base64')
  const envelope = { payloadType: FEED_TYPE, payload: payload.toString('base64'), signatures: [{ sig }] }
  for (const bytes of [payload, Buffer.from(JSON.stringify(envelope))]) {
    try {
      const { name, version } = openFeed(bytes, 'own', [PUBLIC_KEY])
      assert.ok(bytes !== payload && name === 'own' && version >= 1)
    } catch (error) {
      if (!(error instanceof FeedFault)) throw error
    }
  }
}

async function orFault(reading: Promise<void>): Promise<void> {
  try {
    await reading
  } catch (error) {
    isFault(error)
  }
}

/** Throws it if it is not a Fault. */
function isFault(error: unknown): void {
  if (!(error instanceof Fault) || error.message === '') throw error
}

export function busSeeds(): Buffer[] {
  const announcement = {
    ...{ number: 7, hash: 'ab', madeAtMs: 1_800_000_000_000, digest: 'cd'.repeat(32), bytes: 9 },
    delta: { from: 'ef'.repeat(32), bytes: Buffer.from('a\nchange') },
  }
  const worker = {
    number: 0,
    pid: 9,
    state: 'serving',
    sinceMs: 1,
    snapshot: 3,
    dropped: 2,
    unready: ['no'],
  } as const
  const heartbeat: Heartbeat = { ...HEARTBEAT, workers: [worker, { ...worker, pid: null }] }
  const software = { id: 'a', name: 'A', kind: 'tool', signatures: [] }
  const signatures = {
    ...{ hash: '0'.repeat(64), pieces: ['[]'], weights: null, fingerprints: '' },
    index: { path: '', bytes: 3, sha256: '0'.repeat(64) },
  }
  const payload = {
    name: 'own',
    version: 1,
    created: '2026-11-24T00:00:00Z',
    expires: '2027-01-01T00:00:00Z',
  }
  const snapshot = { number: 3, hash: 'ab'.repeat(32), madeAtMs: 1, policy: { rules: [] }, signatures: null }
  const said = (more: Partial<SnapshotDocument>) => `${JSON.stringify({ format: 1, ...snapshot, ...more })}\n`
  const sightings = recorded('sightings')
  const [sighting]: object[] = JSON.parse(zstdDecompressSync(sightings).toString())
  const texts = [
    JSON.stringify(sighting),
    JSON.stringify({ ...sighting, ja4: null, noHello: 'malformed', more: true }),
    JSON.stringify([sighting, null, 1]),
    said({}),
    said({ policy: { rules: [{ name: 'a', when: { path: '/' }, action: 'tag' }] } }),
    `${said({ signatures })}abc`,
    JSON.stringify([{ ...software, later: 1 }]),
    JSON.stringify({ ...payload, software: [software] }),
  ]
  return [
    writeAnnouncement(announcement),
    writeAnnouncement({ ...announcement, delta: null }),
    writeHeartbeat(heartbeat),
    ...texts.map((text) => Buffer.from(text)),
    ...[recorded('announcement'), recorded('heartbeat'), sightings],
    Buffer.from([0, 0, 0, 13, ...zstdCompressSync(Buffer.alloc(0))]),
  ]
}

/** As it was sent by a version before. */
function recorded(name: string): Buffer {
  return readFileSync(new URL(`../plane/recorded/0.1.0/${name}`, import.meta.url))
}

const FEED_TYPE = 'application/vnd.gatehouse.signature-feed.v1+json'
const PRIVATE_KEY = parseFeedPrivateKey(fixedKey())
const PUBLIC_KEY = feedKeyOf(PRIVATE_KEY)
const BEFORE = Buffer.from('what there was before'.repeat(40))
