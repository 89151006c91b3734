import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { buildSignatureIndex, type IndexedSignature } from '../../src/classify/known/index/index-builder.ts'
import { Fault } from '../../src/shared/fault.ts'
import { type IndexFile, IndexLoader, readIndexFile, writeIndexFile } from '../../src/plane/index-file.ts'

const VALUE = 't13d1517h2_8daaf6152771_cb7bf5808d99'

test('loads what was written, instead of the previous file', async (t) => {
  const path = join(t.testdir({ 'signatures.index': 'something older' }), 'signatures.index')
  for (const software of [3, 4]) {
    const said = await writeIndexFile(path, indexOf(software))
    assert.deepEqual(said, fileAsItIs(path))
    const index = await new IndexLoader().load(said)
    assert.deepEqual(index.find('ja4', VALUE, 'exact'), [{ software, observations: 1 }])
  }
  assert.deepEqual(readdirSync(join(path, '..')), ['signatures.index'], 'nothing unfinished stays')
})

test('one of many chunks, and one of none', async (t) => {
  const path = join(t.testdir(), 'index')
  const bytes = new Uint8Array(2.5 * 1024 * 1024).map((_, i) => i % 251)
  for (const written of [bytes, new Uint8Array(0)]) {
    const read = new Uint8Array(3 * 1024 * 1024).fill(255)
    await readIndexFile(await writeIndexFile(path, written), read.buffer)
    assert.deepEqual(Buffer.from(read.subarray(0, written.length)), Buffer.from(written))
    assert.ok(read.subarray(written.length).every((byte) => byte === 255))
  }
})

test('the next index is read into the memory of the one before the last', async (t) => {
  const loader = new IndexLoader()
  const folder = t.testdir()
  const load = async (software: number) =>
    await loader.load(await writeIndexFile(join(folder, 'index'), indexOf(software)))
  const first = await load(1)
  const second = await load(2)
  loader.retire(first)
  assert.deepEqual(first.find('ja4', VALUE, 'exact'), [])
  assert.equal(first.nearest('ja4', VALUE), null)
  const damaged = { ...(await writeIndexFile(join(folder, 'damaged'), indexOf(9))), sha256: '' }
  await assert.rejects(loader.load(damaged), isFault('INDEX_FILE_WRONG', /SHA-256/))
  const third = await load(3)
  assert.deepEqual(first.find('ja4', VALUE, 'exact'), [], 'also when others lie in its place')
  assert.deepEqual(second.find('ja4', VALUE, 'exact'), [{ software: 2, observations: 1 }])
  assert.deepEqual(third.find('ja4', VALUE, 'exact'), [{ software: 3, observations: 1 }])
  assert.equal(third.close(), first.close())
  assert.notEqual(third.close(), second.close())
})

test('a failed write leaves the previous file', async (t) => {
  const folder = t.testdir({ index: { 'a folder': {} } })
  await assert.rejects(
    writeIndexFile(join(folder, 'index'), indexOf(1)),
    isFault('INDEX_FILE_UNWRITABLE', /E[A-Z]+\)/),
  )
  await assert.rejects(
    writeIndexFile(join(folder, 'missing', 'index'), indexOf(1)),
    isFault('INDEX_FILE_UNWRITABLE', /missing.* cannot be written \(ENOENT\)/),
  )
  assert.deepEqual(readdirSync(folder), ['index'])
})

test('a file that is not what was said is refused', async (t) => {
  const cases: readonly (readonly [change: (said: IndexFile) => unknown, code: string, what: RegExp])[] = [
    [
      ({ path, bytes }) => truncateSync(path, bytes - 1),
      'INDEX_FILE_WRONG',
      /has \d+ bytes, and \d+ were said/,
    ],
    [
      ({ path }) => writeFileSync(path, 'x', { flag: 'a' }),
      'INDEX_FILE_WRONG',
      /has \d+ bytes, and \d+ were said/,
    ],
    [({ path }) => changeByte(path), 'INDEX_FILE_WRONG', /SHA-256/],
    [(said) => Object.assign(said, { sha256: '' }), 'INDEX_FILE_WRONG', /SHA-256/],
    [
      (said) => Object.assign(said, { path: `${said.path}.not` }),
      'INDEX_FILE_UNREADABLE',
      /\.not cannot be opened \(ENOENT\)/,
    ],
    [(said) => Object.assign(said, { bytes: 2 ** 31 }), 'INDEX_FILE_WRONG', /at most 1073741824/],
    [(said) => Object.assign(said, { bytes: -1 }), 'INDEX_FILE_WRONG', /-1 bytes/],
    [
      (said) => changeByte(said.path) && Object.assign(said, fileAsItIs(said.path)),
      'INDEX_INVALID',
      /is damaged/,
    ],
  ]
  for (const [change, code, what] of cases) {
    const said = { ...(await written(t)) }
    change(said)
    await assert.rejects(new IndexLoader().load(said), isFault(code, what))
  }
})

test('refuses a folder', async (t) => {
  const path = join(t.testdir(), 'index')
  await mkdir(path)
  await assert.rejects(
    new IndexLoader().load({ path, bytes: 1, sha256: '' }),
    isFault('INDEX_FILE_WRONG', /is not a regular file/),
  )
})

test('the thread goes on while an index is loaded', async (t) => {
  const signatures = Array.from({ length: 20_000 }, (_, i) =>
    signature(`t13d1517h2_8daaf6152771_${digits(i)}`, 1),
  )
  const said = await writeIndexFile(join(t.testdir(), 'index'), buildSignatureIndex(signatures, [1, 2]))
  let turns = 0
  let isLoaded = false
  const turn = () => {
    turns++
    if (!isLoaded) setImmediate(turn)
  }
  setImmediate(turn)
  await new IndexLoader().load(said)
  isLoaded = true
  // Two chunks to read, and some thirty slices to look through.
  assert.ok(turns > 20, `${turns} turns`)
})

async function written(t: Test): Promise<IndexFile> {
  return await writeIndexFile(join(t.testdir(), 'index'), indexOf(1))
}

function indexOf(software: number): Uint8Array<ArrayBuffer> {
  return buildSignatureIndex([signature(VALUE, software)], [1, 2])
}

function signature(value: string, software: number): IndexedSignature {
  return { type: 'ja4', value, software, observations: 1 }
}

function digits(number: number): string {
  return number.toString(16).padStart(12, '0')
}

function fileAsItIs(path: string): IndexFile {
  const bytes = readFileSync(path)
  return { path, bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
}

function changeByte(path: string): boolean {
  const bytes = readFileSync(path)
  bytes[bytes.length - 1]! ^= 1
  writeFileSync(path, bytes)
  return true
}

function isFault(code: string, message: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof Fault && error.code === code && message.test(error.message)
}
