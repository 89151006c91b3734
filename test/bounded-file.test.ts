import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { textIn } from '../src/config/setting-files.ts'
import { readBounded, readBoundedSync } from '../src/shared/bounded-file.ts'

const readers = [
  ['in turns', readBounded],
  ['at once', async (file: string, bytesMax?: number) => readBoundedSync(file, bytesMax)],
] as const

for (const [how, read] of readers)
  test(`a file is read to its end and no further than allowed, ${how}`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bounded-'))
    t.teardown(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'file')
    for (const length of [0, 1, 65_536, 200_000]) {
      const bytes = Buffer.alloc(length, 'ab')
      writeFileSync(file, bytes)
      assert.ok((await read(file)).equals(bytes), `${length} bytes`)
      assert.ok((await read(file, length)).equals(bytes), `${length} bytes, which is the limit`)
      if (length > 0) await assert.rejects(read(file, length - 1), { code: 'EFBIG' })
    }
    const pipe = join(folder, 'pipe')
    execFileSync('mkfifo', [pipe])
    const [got] = await Promise.all([readBounded(pipe), write(pipe)])
    assert.equal(got.toString(), 'through a pipe\n')
    await assert.rejects(read('/dev/zero'), { code: 'EFBIG' })
    await assert.rejects(read(join(folder, 'none')), { code: 'ENOENT' })
    await assert.rejects(read(folder), { code: 'EISDIR' })
  })

test('settings without an end are refused', async () => {
  assert.throws(() => textIn('/dev/zero'), /^Fault: \/dev\/zero: is larger than 16 MiB$/)
})

async function write(pipe: string): Promise<void> {
  await once(spawn('sh', ['-c', 'echo through a pipe > "$0"', pipe]), 'exit')
}
