import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { FileWatch } from '../../src/runtime/file-watch.ts'
import { addReloadMetrics, type ReloadPart, Reloader } from '../../src/runtime/reload.ts'
import { Fault } from '../../src/shared/fault.ts'
import { createLogTo } from '../../src/shared/log.ts'
import { Metrics, metricsText } from '../../src/shared/metrics.ts'

test('files are loaded at first, anew when they change, and not when they do not', async (t) => {
  const { file, used, lines, reloader } = await part(t, 'one')
  assert.deepEqual(used, [])
  await reloader.check(false)
  utimesSync(file, 1, 1)
  await reloader.check(false)
  assert.deepEqual(used, [])
  writeFileSync(file, 'two')
  await reloader.check(false)
  await reloader.check(false)
  assert.deepEqual(used, ['two'])
  assert.deepEqual(
    lines().map(({ message }) => message),
    ['reloaded'],
  )
  assert.equal(reloader.status.version, 2)
})

test('a large file is noticed when it changes, too', async (t) => {
  const { file, used, reloader } = await part(t, 'one')
  const large = (first: string) => first.padEnd(2 * 1024 * 1024, '.')
  writeFileSync(file, large('two'))
  await reloader.check(false)
  await reloader.check(false)
  assert.equal(used.length, 1)
  const { hash } = reloader.status
  writeFileSync(file, large('six'))
  await reloader.check(false)
  assert.equal(used.length, 2)
  assert.notEqual(reloader.status.hash, hash)
  utimesSync(file, 1, 1)
  await reloader.check(false)
  assert.equal(used.length, 2, 'a new time is not a new file')
})

test('the hash in use is of all bytes of its files, also of those that are read in pieces', async (t) => {
  const { file, reloader } = await part(t, 'one')
  for (const length of [0, 65_536, 3 * 65_536 + 1]) {
    const bytes = randomBytes(length)
    writeFileSync(file, bytes)
    await reloader.check(false)
    const hashes = createHash('sha256').update(bytes).digest('hex')
    assert.equal(reloader.status.hash, createHash('sha256').update(hashes).digest('hex'), `${length} bytes`)
  }
})

test('hashing a large file leaves no memory for V8 to collect', async (t) => {
  const { file, reloader } = await part(t, 'one')
  writeFileSync(file, Buffer.alloc(64 * 1024 * 1024))
  const before = process.memoryUsage().arrayBuffers
  let most = 0
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage().arrayBuffers - before)
  }, 1)
  await reloader.check(false)
  clearInterval(timer)
  assert.ok(most < 2 * 1024 * 1024, `${most} bytes`)
})

test('a bad file leaves the old one in use, and is said once', async (t) => {
  const { file, used, lines, reloader } = await part(t, 'one')
  const { hash } = reloader.status
  writeFileSync(file, 'bad')
  for (let i = 0; i < 3; i++) await reloader.check(false)
  assert.deepEqual(used, [])
  assert.equal(lines().length, 1)
  assert.deepEqual(lines()[0]!['problems'], ['line 1: bad', 'line 2: bad too'])
  assert.deepEqual(
    [reloader.status.isCurrent, reloader.status.failed, reloader.status.hash],
    [false, 1, hash],
  )
  await reloader.check(true)
  assert.equal(lines().length, 2, 'a requested reload reports again')
  unlinkSync(file)
  await reloader.check(false)
  assert.equal(reloader.status.failed, 3)
  writeFileSync(file, 'one')
  await reloader.check(false)
  assert.deepEqual(used, ['one'], 'the same as before is loaded after a failure')
  assert.deepEqual([reloader.status.isCurrent, reloader.status.hash], [true, hash])
})

test('what fails for no fault of the files is tried again at the next look, and said once', async (t) => {
  const { file, used, lines, reloader, part: given } = await part(t, 'one')
  const { load } = given
  const failWith = (error: Error) => {
    given.load = () => Promise.reject(error)
  }
  failWith(new Fault('HELPER_GONE', 'the process that compiles signatures has ended'))
  writeFileSync(file, 'two')
  for (let i = 0; i < 3; i++) await reloader.check(false)
  assert.deepEqual([lines().length, reloader.status.failed, reloader.status.isCurrent], [1, 3, false])
  failWith(Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' }))
  for (let i = 0; i < 2; i++) await reloader.check(false)
  assert.equal(lines().length, 2, 'another reason is said')
  writeFileSync(file, 'three')
  await reloader.check(false)
  assert.equal(lines().length, 3, 'as it is of other files')
  given.load = load
  await reloader.check(false)
  await reloader.check(false)
  assert.deepEqual(used, ['three'])
  assert.equal(reloader.status.isCurrent, true)
})

test('throws if the first load fails', async (t) => {
  await assert.rejects(part(t, 'bad'), { code: 'TEST_INVALID' })
})

test('what cannot be put to use was not reloaded, even by a bug of ours', async (t) => {
  const { file, lines, reloader, part: given } = await part(t, 'one')
  given.use = () => {
    throw new TypeError('undefined is not a function')
  }
  writeFileSync(file, 'two')
  await reloader.check(false)
  assert.deepEqual([reloader.status.failed, reloader.status.isCurrent], [1, false])
  assert.match(JSON.stringify(lines()[0]), /undefined is not a function/)
})

test('checks come one after the other', async (t) => {
  const { file, reloader, part: given } = await part(t, 'one')
  let loading = 0
  const load = given.load
  given.load = async () => {
    assert.equal(++loading, 1)
    await new Promise((resolve) => setImmediate(resolve))
    loading--
    return load()
  }
  writeFileSync(file, 'two')
  await Promise.all(Array.from({ length: 10 }, () => reloader.check(true)))
  assert.deepEqual([reloader.status.loaded, reloader.status.failed], [10, 0])
})

test('the metrics show outcome, version, hash and time', async (t) => {
  const { file, reloader } = await part(t, 'one')
  writeFileSync(file, 'bad')
  await reloader.check(false)
  const metrics = new Metrics()
  addReloadMetrics(metrics, () => [reloader.status])
  const text = await metricsText([await metrics.read()])
  assert.match(text, /^gatehouse_reload_total\{what="things",outcome="failed"\} 1$/m)
  assert.match(text, /^gatehouse_reload_total\{what="things",outcome="loaded"\} 0$/m)
  assert.match(text, /^gatehouse_reload_current\{what="things"\} 0$/m)
  assert.match(text, /^gatehouse_loaded_version\{what="things"\} 1$/m)
  const hash = Number(/^gatehouse_loaded_hash\{what="things"\} (\d+)$/m.exec(text)![1])
  assert.equal(hash.toString(16).padStart(12, '0'), reloader.status.hash.slice(0, 12))
  const loaded = Number(/^gatehouse_loaded_timestamp_seconds\{what="things"\} ([\d.]+)$/m.exec(text)![1])
  assert.ok(Math.abs(loaded - Date.now() / 1000) < 60)
})

test('a watch sees a file written, replaced, removed and made', async (t) => {
  const folder = temporaryFolder(t)
  const file = join(folder, 'policy.yaml')
  const changed = watching(t, [file])
  const changes = [
    () => writeFileSync(file, 'new'),
    () => writeFileSync(file, 'other'),
    () => {
      writeFileSync(`${file}.tmp`, 'third')
      renameSync(`${file}.tmp`, file)
    },
    () => unlinkSync(file),
  ]
  for (const change of changes) {
    const call = changed()
    change()
    await call
  }
})

test("a watch sees Kubernetes' swap of links", async (t) => {
  const folder = temporaryFolder(t)
  volume(folder, '..2026_01', 'old')
  symlinkSync('..2026_01', join(folder, '..data'))
  symlinkSync('..data/tls.crt', join(folder, 'tls.crt'))
  const file = join(folder, 'tls.crt')
  const changed = watching(t, [file])
  const call = changed()
  volume(folder, '..2026_02', 'new')
  symlinkSync('..2026_02', join(folder, '..data_tmp'))
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  rmSync(join(folder, '..2026_01'), { recursive: true })
  await call
  assert.equal(readFileSync(file, 'utf8'), 'new')
})

test('where no sign comes, the poll looks; also in a folder that comes later', async (t) => {
  const folder = join(temporaryFolder(t), 'mounted later')
  const changed = watching(t, [join(folder, 'a')], { settleMs: 1, pollMs: 20 })
  await changed()
  mkdirSync(folder)
  await changed()
  await changed()
})

test('a folder where something always goes on does not put the call off', async (t) => {
  const folder = temporaryFolder(t)
  const changed = watching(t, [join(folder, 'a')], { settleMs: 30, pollMs: 1_000_000 })
  const noise = setInterval(() => writeFileSync(join(folder, 'noise'), String(Math.random())), 2)
  t.teardown(() => clearInterval(noise))
  await changed()
  await changed()
})

test('after close it is silent', async (t) => {
  const folder = temporaryFolder(t)
  let calls = 0
  const watch = new FileWatch([join(folder, 'a')], () => calls++, { settleMs: 1, pollMs: 2 })
  watch.close()
  writeFileSync(join(folder, 'a'), 'x')
  await new Promise((resolve) => setTimeout(resolve, 30))
  assert.equal(calls, 0)
})

type Changing<Value> = { -readonly [Key in keyof ReloadPart<Value>]: ReloadPart<Value>[Key] }

async function part(t: Test, content: string) {
  const file = join(temporaryFolder(t), 'thing')
  writeFileSync(file, content)
  const written: string[] = []
  const log = createLogTo('info', { write: (line) => void written.push(line) })
  const used: string[] = []
  const given: Changing<string> = {
    what: 'things',
    files: async () => [file],
    load: async () => {
      const text = readFileSync(file, { encoding: 'utf8', flag: 'r' })
      if (text === 'bad') throw new Fault('TEST_INVALID', 'line 1: bad\nline 2: bad too')
      return text
    },
    use: (value) => void used.push(value),
  }
  const { reloader } = await Reloader.load(given, log)
  const lines = (): Record<string, unknown>[] => written.map((line) => JSON.parse(line))
  return { file, used, lines, reloader, part: given }
}

/** Each call is a promise of the next sign. */
function watching(
  t: Test,
  files: readonly string[],
  times = { settleMs: 5, pollMs: 1_000_000 },
): () => Promise<void> {
  let next = Promise.withResolvers<void>()
  const watch = new FileWatch(
    files,
    () => {
      next.resolve()
      next = Promise.withResolvers()
    },
    times,
  )
  const alive = setInterval(() => undefined, 1000) // the watch keeps no process alive
  t.teardown(() => {
    watch.close()
    clearInterval(alive)
  })
  /** Resolves with the next call. */
  return async () => {
    const isCalled = next.promise.then(() => true)
    assert.ok(await Promise.race([isCalled, wait(10_000, false, { ref: false })]), 'the watch calls')
  }
}

function volume(folder: string, name: string, content: string): void {
  mkdirSync(join(folder, name))
  writeFileSync(join(folder, name, 'tls.crt'), content)
}

function temporaryFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-reload-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
