import assert from 'node:assert/strict'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import { readAnnouncement, writeAnnouncement } from '../../src/plane/announcement.ts'
import { makeSnapshot, type SnapshotDocument } from '../../src/plane/snapshot.ts'
import { makeDelta, shrink } from '../../src/plane/snapshot-delta.ts'
import { SnapshotFollower } from '../../src/plane/snapshot-follower.ts'
import { digestOf, packSnapshot } from '../../src/plane/snapshot-package.ts'
import { PolicyCompiler } from '../../src/plane/snapshot-policies.ts'
import { silentLog } from '../../src/shared/log.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { until } from '../until.ts'

const APPS = 200
const RULES = 200
const CHANGES = 6
const MIB = 1024 ** 2
setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

test('a compiled rule that names a path takes less than 200 bytes', async () => {
  const compiler = new PolicyCompiler()
  const document = documentOf(1)
  const before = heapBytes()
  const compiled = await compiler.compile(document, null)
  const each = (heapBytes() - before) / APPS / RULES
  assert.equal(compiled.appPolicies.size, APPS)
  assert.ok(each < 200, `${each} bytes`)
  assert.notEqual(await compiler.compile(document, null), null) // it is in use until here
})

for (const app of [null, 'app-7'])
  test(`changes of 200 apps leave no buffers behind (proxy.app: ${app})`, async (t) => {
    const first = await announced(documentOf(1), null)
    const messages: Buffer[] = []
    let last = first.bytes
    for (let number = 2; number <= CHANGES; number++) {
      const { bytes, message } = await announced(documentOf(number), last)
      messages.push(message)
      last = bytes
    }
    const source = { announced: async () => first.message, whole: async () => shrink(first.bytes) }
    let inUse: SnapshotDocument | null = null
    const use = (document: SnapshotDocument) => {
      inUse = document
    }
    const options = { folder: temporaryFolder(t), spreadMs: 0, app }
    const follower = new SnapshotFollower(source, options, use, silentLog())
    await follower.ask()
    gc()
    const before = process.memoryUsage().arrayBuffers
    const buffers: number[] = []
    for (const message of messages) {
      follower.take(message)
      await until(() => inUse!.number === readAnnouncement(message).number)
      buffers.push((process.memoryUsage().arrayBuffers - before) / MIB)
    }
    // The package of the last change may not be on disk yet.
    const most = last.length / MIB + 1
    assert.ok(Math.max(...buffers) < most, `MiB after each change: ${buffers.map((each) => each.toFixed(1))}`)
    assert.equal(inUse!.appPolicies!.length, app === null ? APPS : 1)
    assert.ok((await follower.kept())!.equals(last))
    await follower.close()
  })

/** The package, and its announcement with the difference from the one before. */
async function announced(document: SnapshotDocument, before: Buffer | null) {
  const bytes = await packSnapshot(document)
  const { number, hash, madeAtMs } = document
  const delta = before === null ? null : { from: digestOf(before), bytes: await makeDelta(before, bytes) }
  const said = { number, hash, madeAtMs, digest: digestOf(bytes), bytes: bytes.length, delta }
  return { bytes, message: writeAnnouncement(said) }
}

/** Each number has another policy of one app. */
function documentOf(number: number): SnapshotDocument {
  const appPolicies = Array.from({ length: APPS }, (_, app) => {
    const version = app === number ? number : 0
    const rules = Array.from({ length: RULES }, (_, rule) => ({
      name: `rule-${rule}`,
      when: { path: `/app-${app}/${version}/${rule}` },
      action: 'block',
    }))
    return { app: `app-${app}`, document: JSON.stringify({ rules }) }
  })
  return makeSnapshot(number, {}, number, null, { appPolicies })
}

function heapBytes(): number {
  for (let times = 0; times < 3; times++) gc()
  return process.memoryUsage().heapUsed
}
