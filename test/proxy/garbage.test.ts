import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { noteBuffer } from '../../src/proxy/connection/garbage.ts'

const MODULE = new URL('../../src/proxy/connection/garbage.ts', import.meta.url).href
const MIB = 1024 * 1024

/** The young generation's bytes before and after. */
function dropped(): readonly [before: number, after: number] {
  const program = `
    import v8 from 'node:v8'
    import { endStart } from ${JSON.stringify(MODULE)}
    const young = () => v8.getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size
    let kept = []
    for (let i = 0; i < 400_000; i++) kept.push({ i, text: String(i) })
    const before = young()
    kept = []
    endStart({ servesTraffic: true })
    console.log(JSON.stringify([before, young()]))`
  const args = ['--max-semi-space-size=16', '--input-type=module', '--eval', program]
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }))
}

test('what the start has grown is given back', async () => {
  const [before, after] = dropped()
  assert.ok(before >= 16 * MIB, `${before}`)
  assert.ok(after <= 2 * MIB, `${after}`)
})

test('who serves has the heap grow before all of it is looked through, and others have it as V8 does', async () => {
  // By how much the heap may grow until then, as V8 says after each look.
  const factors = (servesTraffic: boolean) => {
    const program = `
      import { endStart } from ${JSON.stringify(MODULE)}
      endStart({ servesTraffic: ${servesTraffic} })
      for (let i = 0; i < 6; i++) {
        globalThis.kept = Array.from({ length: 20_000 }, (_, n) => ({ n }))
        gc()
      }`
    const args = ['--trace-gc-verbose', '--input-type=module', '--eval', program]
    const said = execFileSync(process.execPath, args, { encoding: 'utf8' })
    return [...said.matchAll(/HeapController\] factor ([0-9.]+)/g)].map((match) => match[1])
  }
  const serving = factors(true)
  assert.ok(serving.length >= 7, String(serving))
  assert.deepEqual(new Set(serving), new Set(['2.5']))
  // What V8 makes of how fast it is may be the same once.
  assert.ok(factors(false).some((factor) => factor !== '2.5'))
})

test('bytes of bodies have the young generation looked through, and not in the middle of anything', async (t) => {
  const asked: unknown[] = []
  const before = globalThis.gc
  t.teardown(() => Object.assign(globalThis, { gc: before }))
  Object.assign(globalThis, { gc: (options: unknown) => void asked.push(options) })
  for (let i = 0; i < 511; i++) noteBuffer(16_384)
  await new Promise(setImmediate)
  assert.deepEqual(asked, [])
  noteBuffer(16_384)
  assert.deepEqual(asked, [])
  await new Promise(setImmediate)
  assert.deepEqual(asked, [{ type: 'minor' }])
  Object.assign(globalThis, { gc: undefined })
  noteBuffer(MIB * 8)
  await new Promise(setImmediate)
})

test('what has been compiled until then is taken by the next start, which has no other flags', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'compiled-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'start.cjs')
  writeFileSync(file, `import(${JSON.stringify(MODULE)}).then((m) => m.endStart({ servesTraffic: true }))`)
  const start = () =>
    spawnSync(process.execPath, ['--max-semi-space-size=16', file], {
      env: { ...process.env, NODE_COMPILE_CACHE: folder, NODE_DEBUG_NATIVE: 'COMPILE_CACHE' },
      encoding: 'utf8',
    }).stderr
  start()
  const said = start()
  assert.match(said, /cache for CommonJS \S+start\.cjs was accepted/)
  assert.doesNotMatch(said, /rejected/)
  assert.match(start(), /start\.cjs was accepted/)
})
