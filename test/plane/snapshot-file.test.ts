import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { zstdCompress } from 'node:zlib'
import { test } from 'tap'
import { Fault } from '../../src/shared/fault.ts'
import { createLogTo, silentLog } from '../../src/shared/log.ts'
import { FleetProxy } from '../../src/plane/fleet-proxy.ts'
import { makeSnapshot, type SnapshotDocument } from '../../src/plane/snapshot.ts'
import {
  packSnapshotFile,
  parseSnapshotFile,
  readSnapshotFile,
  SNAPSHOT_FILE_BYTES_MAX,
} from '../../src/plane/snapshot-file.ts'
import { SnapshotFollower } from '../../src/plane/snapshot-follower.ts'
import { packSnapshot } from '../../src/plane/snapshot-package.ts'
import { temporaryFolder } from '../e2e/programs.ts'

const BLOCKS = { rules: [{ name: 'closed', when: { path: '/closed' }, action: 'block' }] }
const TAGS = { rules: [] }
const log = silentLog()

test('a Snapshot file has what was put into it', async () => {
  const document = makeSnapshot(7, BLOCKS, 1_790_000_000_000)
  const read = await parseSnapshotFile(await packSnapshotFile(document))
  assert.deepEqual(read.document, document)
  assert.deepEqual(read.package, await packSnapshot(document))
})

test('a Snapshot file that was cut at any byte is refused, at once', async () => {
  const file = await packSnapshotFile(makeSnapshot(7, BLOCKS, 1_790_000_000_000))
  const startMs = performance.now()
  for (let length = 0; length < file.length; length++) await refused(file.subarray(0, length), /; /)
  await refused(Buffer.concat([file, Buffer.from([0])]), /bytes after its first line instead of/)
  assert.ok(performance.now() - startMs < 5_000, `${file.length} cuts`)
})

test('a Snapshot file in which any byte was changed is refused', async () => {
  const document = makeSnapshot(7, BLOCKS, 1_790_000_000_000)
  const file = await packSnapshotFile(document)
  for (let at = 0; at < file.length; at++) {
    const changed = Buffer.from(file)
    changed[at]! ^= 0x20
    await refused(changed, /./)
  }
})

test('a Snapshot file of another format, of no size and of nonsense is refused with what to do', async () => {
  const line = (head: unknown) => Buffer.from(`gatehouse-snapshot ${JSON.stringify(head)}\n`)
  const sha256 = 'a'.repeat(64)
  await refused(line({ format: 2 }), /format 2; this version reads format 1; write it with the same version/)
  await refused(line({}), /format none/)
  await refused(line(null), /invalid first line; write one with "gatehouse snapshot export"/)
  for (const [bytes, packed_bytes] of [
    [-1, 1],
    [0, 0],
    [1.5, 1],
    ['1', 1],
    [1, null],
    [2 ** 60, 1],
  ])
    await refused(line({ format: 1, sha256, bytes, packed_bytes }), /invalid first line/)
  await refused(line({ format: 1, sha256: 'x', bytes: 1, packed_bytes: 1 }), /invalid first line/)
  await refused(Buffer.alloc(5_000, 0x20), /is not a Snapshot file/)
  await refused(Buffer.from('kind: ConfigMap\n'), /is not a Snapshot file/)
})

test('a package that grows beyond what its file says is not decompressed further', async () => {
  const bomb = await promisify(zstdCompress)(Buffer.alloc(64 * 1024 ** 2))
  const head = {
    format: 1,
    sha256: createHash('sha256').update(bomb).digest('hex'),
    bytes: 1_000,
    packed_bytes: bomb.length,
  }
  await refused(
    Buffer.concat([Buffer.from(`gatehouse-snapshot ${JSON.stringify(head)}\n`), bomb]),
    /cannot be decompressed/,
  )
})

test('a package whose checksum is right and whose content is invalid is refused', async () => {
  const good = { format: 1, number: 7, hash: 'h', madeAtMs: 1, policy: TAGS, signatures: null }
  for (const head of [
    ...[null, [], 'text', {}, { ...good, format: 9 }, { ...good, number: '7' }, { ...good, number: 0 }],
    ...[
      { ...good, number: -1 },
      { ...good, madeAtMs: 1e300 },
      { ...good, madeAtMs: -1 },
    ],
    ...[
      { ...good, signatures: 5 },
      { ...good, hash: 5 },
    ],
  ])
    await refused(await fileOf(Buffer.from(`${JSON.stringify(head)}\n`)), /SNAPSHOT_INVALID|./)
  await refused(await fileOf(Buffer.from('no line feed')), /./)
})

test('a folder, a pipe, a missing file and one that is too large are refused', async (t) => {
  const folder = temporaryFolder(t)
  const at = (name: string) => join(folder, name)
  mkdirSync(at('folder'))
  execFileSync('mkfifo', [at('pipe')])
  writeFileSync(at('large'), '')
  truncateSync(at('large'), SNAPSHOT_FILE_BYTES_MAX + 1)
  await assert.rejects(readSnapshotFile(at('missing')), /missing cannot be read \(ENOENT\)/)
  await assert.rejects(readSnapshotFile(at('folder')), /folder is not a file/)
  await assert.rejects(readSnapshotFile(at('pipe')), /pipe is not a file/)
  await assert.rejects(readSnapshotFile(at('large')), /large has 268435457 bytes/)
})

test('the newer of the copy on disk and the bootstrap file is in use, and the copy stays', async (t) => {
  const folder = temporaryFolder(t)
  const nowMs = Date.now()
  writeFileSync(join(folder, 'newest.snapshot'), await packSnapshot(makeSnapshot(nowMs, BLOCKS, nowMs)))
  for (const [number, isUsed] of [
    ...([
      [1, false],
      [nowMs, false],
      [nowMs + 1, true],
    ] as const),
  ]) {
    const used: SnapshotDocument[] = []
    const follower = followerIn(folder, used)
    await follower.restore()
    const file = await parseSnapshotFile(await packSnapshotFile(makeSnapshot(number, TAGS, nowMs)))
    assert.equal(await follower.bootstrap(file), isUsed, String(number))
    assert.deepEqual(used.at(-1)?.policy, isUsed ? TAGS : BLOCKS)
    await follower.close()
  }
  const again: SnapshotDocument[] = []
  const follower = followerIn(folder, again)
  assert.equal(await follower.restore(), true)
  assert.deepEqual(again[0]?.policy, BLOCKS, 'the file replaced nothing on disk')
  await follower.close()
})

test('a bootstrap file is ignored if a newer Snapshot comes while it is unpacked', async (t) => {
  const nowMs = Date.now()
  const used: SnapshotDocument[] = []
  const follower = followerIn(temporaryFolder(t), used)
  const fileWith = async (number: number) =>
    parseSnapshotFile(await packSnapshotFile(makeSnapshot(number, TAGS, nowMs)))
  const [newer, older] = [await fileWith(nowMs), await fileWith(nowMs - 1)]
  assert.deepEqual(await Promise.all([follower.bootstrap(newer), follower.bootstrap(older)]), [true, false])
  assert.deepEqual(
    used.map(({ number }) => number),
    [nowMs],
  )
  await follower.close()
})

test('a bootstrap file from the future cannot keep out what the fleet publishes', async (t) => {
  const follower = followerIn(temporaryFolder(t), [])
  const far = makeSnapshot(Date.now() + 2 * 86_400_000, TAGS, 1)
  await assert.rejects(
    follower.bootstrap(await parseSnapshotFile(await packSnapshotFile(far))),
    /in the future/,
  )
  assert.equal(follower.status.inUse, null)
  await follower.close()
})

test('a proxy names why its bootstrap file is not in use, and says no password', async (t) => {
  const dataFolder = temporaryFolder(t)
  const bootstrapFile = join(dataFolder, 'b.snapshot')
  writeFileSync(bootstrapFile, 'damaged')
  const lines: string[] = []
  const noisy = createLogTo('info', { write: (line) => void lines.push(line) })
  const bus = {
    ...{
      urls: ['nats://me:secret@127.0.0.1:9'],
      name: 'x',
      credentialsFile: null,
      user: null,
      password: null,
    },
    ...{ token: null, tls: { caFile: null, certificateFile: null, keyFile: null } },
  }
  const settings = {
    bus,
    dataFolder,
    spoolBytesMax: null,
    version: '1',
    configHash: 'a'.repeat(64),
    bootstrapFile,
  }
  const proxy = await FleetProxy.open(settings, () => [], noisy)
  t.teardown(() => proxy.close())
  assert.equal(await proxy.restore(), false)
  const reason = proxy.waitsFor
  assert.equal(reason?.code, 'first_snapshot')
  assert.match(reason!.detail, /NATS is unreachable at nats:\/\/127\.0\.0\.1:9; check bus\.url/)
  assert.match(reason!.detail, /bus\.bootstrap_file: .*b\.snapshot is not a Snapshot file/)
  assert.doesNotMatch(reason!.detail + lines.join(''), /secret/)
  assert.ok(lines.some((line) => line.includes('bus.bootstrap_file cannot be used')))
})

function followerIn(folder: string, used: SnapshotDocument[]): SnapshotFollower {
  const source = { announced: async () => null, whole: async () => null }
  return new SnapshotFollower(source, { folder }, (document) => void used.push(document), log)
}

async function refused(file: Buffer, how: RegExp): Promise<void> {
  await assert.rejects(parseSnapshotFile(file), (error) => {
    assert.ok(error instanceof Fault, String(error))
    assert.equal(error.code, 'SNAPSHOT_INVALID')
    assert.match(error.message, how)
    return true
  })
}

/** With a correct description of the package. */
async function fileOf(whole: Buffer): Promise<Buffer> {
  const packed = await promisify(zstdCompress)(whole)
  const sha256 = createHash('sha256').update(packed).digest('hex')
  const head = { format: 1, sha256, bytes: whole.length, packed_bytes: packed.length }
  return Buffer.concat([Buffer.from(`gatehouse-snapshot ${JSON.stringify(head)}\n`), packed])
}
