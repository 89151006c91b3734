import assert from 'node:assert/strict'
import { NO_PAYMENTS } from '../../src/payment/payment-terms.ts'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { writeAnnouncement } from '../../src/plane/announcement.ts'
import { makeSnapshot, type SnapshotDocument } from '../../src/plane/snapshot.ts'
import { shrink } from '../../src/plane/snapshot-delta.ts'
import { NEWEST_FILE, SnapshotFollower } from '../../src/plane/snapshot-follower.ts'
import { digestOf, packSnapshot } from '../../src/plane/snapshot-package.ts'
import { FleetSnapshots } from '../../src/runtime/gateway/fleet-snapshots.ts'
import { createLogTo } from '../../src/shared/log.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { until } from '../until.ts'

const BLOCKS = '{"rules":[{"name":"closed","when":{},"action":"block"}]}'
const good = (number: number, shop = BLOCKS) =>
  makeSnapshot(number, { rules: [] }, 1, null, {
    appPolicies: [
      { app: 'blog', document: '{"rules":[]}' },
      { app: 'shop', document: shop },
    ],
  })

test('a sidecar says what is wrong with its copy of the Snapshot, and uses the next one', async (t) => {
  const whole = await packSnapshot(good(7))
  const text = whole.toString()
  const damaged: readonly (readonly [file: Buffer | string, why: RegExp])[] = [
    ['', /a Snapshot has no head/],
    [whole.subarray(0, 100), /a Snapshot has no head/],
    [text.replace('{"format"', '"format"'), /a Snapshot has a head that is not valid JSON/],
    [text.replace('"format":1', '"format":2'), /a Snapshot is of format 2, and this version reads 1/],
    [text.replace('"hash"', '"hsah"'), /a Snapshot is not a Snapshot/],
    [text.replace('"app":"shop"', '"app":"../shop"'), /an invalid policy of an app/],
    [text.replace('"action\\":\\"block', '"action\\":\\"blok'), /the policy of the app .*shop.*blok/],
    [text.replace('when\\":{}', 'when\\":'), /the policy of the app .*shop/],
  ]
  for (const [file, why] of damaged) {
    const { copy, follower, said, used, announce } = sidecar(t)
    writeFileSync(copy, file)
    assert.equal(await follower.restore(), false)
    assert.equal(said.length, 1, String(why))
    assert.match(said[0]!, why)
    assert.ok(said[0]!.includes(copy), said[0])
    await announce(good(8))
    assert.deepEqual(used.map(policyOfShop), [BLOCKS])
    await follower.close()
  }
})

test('a sidecar that is sent a damaged policy says so, and goes on with the one before', async (t) => {
  const { follower, said, used, announce } = sidecar(t)
  await announce(good(7))
  await announce(good(8, '{"rules": [{"name": "x", "when": {}, "action": "blok"}]}'))
  assert.deepEqual(used.map(policyOfShop), [BLOCKS])
  const { refused, inUse } = follower.status
  assert.deepEqual([refused?.number, inUse?.number], [8, 7])
  assert.match(
    refused!.why,
    /^the policy of the app "shop": rule "x": rules\.0\.action: .*did you mean "block"/,
  )
  assert.match(said.join('\n'), /a newer Snapshot is unavailable; the current one stays in use/)
  await announce(good(9, '{"rules":[]}'))
  assert.deepEqual(used.map(policyOfShop), [BLOCKS, '{"rules":[]}'])
  assert.equal(follower.status.refused, null)
  await follower.close()
})

/** Of the app `shop`, with a folder of its own. */
function sidecar(t: Test) {
  const folder = temporaryFolder(t)
  const said: string[] = []
  const used: SnapshotDocument[] = []
  const publish = (document: SnapshotDocument) => void used.push(document)
  const snapshots = new FleetSnapshots(
    { app: 'shop', policyFile: null, upstreams: [], payments: NO_PAYMENTS },
    { publish },
  )
  let package_: Buffer | null = null
  const source = { announced: async () => null, whole: async () => package_ }
  const log = createLogTo('info', { write: (line) => said.push(line) })
  const follower = new SnapshotFollower(
    source,
    { folder, spreadMs: 0, app: 'shop' },
    (document) => snapshots.take(document),
    log,
  )
  const announce = async (document: SnapshotDocument) => {
    const { number, hash, madeAtMs } = document
    const bytes = await packSnapshot(document)
    package_ = await shrink(bytes)
    const announcement = { number, hash, madeAtMs, digest: digestOf(bytes), bytes: bytes.length, delta: null }
    follower.take(writeAnnouncement(announcement))
    await until(() => [follower.status.inUse?.number, follower.status.refused?.number].includes(number))
  }
  return { copy: join(folder, NEWEST_FILE), follower, said, used, announce }
}

function policyOfShop({ appPolicies }: SnapshotDocument): string | undefined {
  assert.deepEqual(
    appPolicies?.map(({ app }) => app),
    ['shop'],
  )
  return appPolicies![0]!.document
}
