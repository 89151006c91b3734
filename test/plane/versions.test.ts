import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { zstdDecompress } from 'node:zlib'
import { after, test } from 'tap'
import { compiled } from '../../src/runtime/signatures/signature-compiler.ts'
import { readSighting } from '../../src/plane/sighting-document.ts'
import { readAnnouncement } from '../../src/plane/announcement.ts'
import { readHeartbeat } from '../../src/plane/heartbeat.ts'
import { unpackSightings } from '../../src/plane/sighting-batch.ts'
import { KnowledgeReader, type SignatureSet } from '../../src/plane/signature-set.ts'
import { parseSnapshot } from '../../src/plane/snapshot.ts'
import { applyDelta } from '../../src/plane/snapshot-delta.ts'
import { digestOf, packSnapshot, unpackSnapshot } from '../../src/plane/snapshot-package.ts'

/** Messages as each released version has written them, made by recorded/make.ts when it was. */
const RECORDED = ['0.1.0']

const folder = await mkdtemp(join(tmpdir(), 'gatehouse-versions-'))
after(() => rm(folder, { recursive: true, force: true }))

for (const version of RECORDED) {
  test(`what ${version} says is read: a manager and its proxies need not be of one version`, async () => {
    const read = (name: string) => readFile(new URL(`recorded/${version}/${name}`, import.meta.url))
    assert.equal(readHeartbeat(await read('heartbeat')).version, version)
    const announcement = readAnnouncement(await read('announcement'))
    const before = await promisify(zstdDecompress)(await read('package-before'))
    const after = await applyDelta(before, announcement.delta!.bytes, announcement.bytes)
    assert.deepEqual([digestOf(before), digestOf(after)], [announcement.delta!.from, announcement.digest])
    const document = await unpackSnapshot(after, join(folder, version), true)
    assert.equal(parseSnapshot(document).policy.last.rules.length, 1)
    assert.ok((await new KnowledgeReader().read(document.signatures!)).userAgents !== null)
    const batch = await unpackSightings(await read('sightings'))
    for (const each of batch) assert.equal(typeof readSighting(each), 'object')
  })
}

test('what a later version says of software beside what is known here is passed over', async () => {
  const sources = { feeds: [], accepted: '', paths: [], ranges: [], weightsFile: null }
  const { set } = await compiled({ sources, folder, newest: null, copies: [] })
  const later = withMore(set!)
  const knowledge = await new KnowledgeReader().read(later)
  assert.ok(knowledge.fingerprints !== null)
  const packed = await packSnapshot({
    number: 2,
    hash: 'x',
    madeAtMs: 1,
    policy: { rules: [] },
    signatures: later,
  })
  assert.deepEqual((await unpackSnapshot(packed, folder, true)).signatures!.pieces, later.pieces)
})

test('refuses a policy with an unknown condition, because without it the policy would differ', async () => {
  const policy = { rules: [{ name: 'new', when: { aura: 'dark' }, action: 'block' }] }
  const document = { number: 2, hash: 'x', madeAtMs: 1, policy, signatures: null }
  assert.throws(() => parseSnapshot(document), { code: 'POLICY_INVALID' })
})

/** Each of the software says something new, also inside. */
function withMore(set: SignatureSet): SignatureSet {
  const pieces = set.pieces.map((piece) =>
    JSON.stringify(
      (JSON.parse(piece) as { signatures?: object[] }[]).map((software) => ({
        ...software,
        colour: 'green',
        ...(software.signatures === undefined
          ? {}
          : { signatures: software.signatures.map((each) => ({ ...each, mood: 1 })) }),
      })),
    ),
  )
  const hash = createHash('sha256').update(JSON.stringify(set.weights)).update(set.fingerprints)
  for (const piece of pieces) hash.update(piece)
  return { ...set, pieces, hash: hash.digest('hex') }
}
