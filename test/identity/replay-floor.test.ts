import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { ReplayFloor } from '../../src/identity/verify/replay-floor.ts'
import { ReplayMemory } from '../../src/identity/verify/replay-memory.ts'
import { createLogTo } from '../../src/shared/log.ts'

const NOW_S = Date.UTC(2026, 10, 26, 9) / 1_000

test('a signature that was used before a kill is not accepted after it, whatever the clock of its signer', async (t) => {
  for (const aheadS of [0, 1, 2, 30, 59, 60]) {
    const gate = newGate(t)
    const first = await gate.start()
    gate.nowS += 5
    const createdS = gate.nowS + aheadS
    assert.equal(await first.claim('a', createdS), true)
    // Nothing is said to the first one: it is killed.
    for (const laterS of [0, 1, aheadS, aheadS + 1]) {
      gate.nowS += laterS
      const next = await gate.start()
      assert.equal(await next.claim('a', createdS), null, `${aheadS} s ahead, ${laterS} s later`)
    }
  }
})

test('of any uses and kills in any order, no signature is accepted twice', async (t) => {
  // Random but the same in each run.
  let seed = 7
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return seed % below
  }
  const gate = newGate(t)
  const accepted = new Set<string>()
  let running = await gate.start()
  for (let i = 0; i < 400; i++) {
    if (random(8) === 0) {
      gate.nowS += random(3)
      running = await gate.start()
    }
    gate.nowS += random(2)
    const createdS = gate.nowS - 5 + random(66)
    const key = `${random(3)}`
    const id = `${key} ${createdS}`
    const isAccepted = (await running.claim(id, createdS, key)) === true
    assert.ok(!isAccepted || !accepted.has(id), `${id} was accepted twice`)
    if (isAccepted) accepted.add(id)
  }
  assert.ok(accepted.size > 20)
})

test('what was created before the start is unknown, not a replay; what is created after it is accepted', async (t) => {
  const gate = newGate(t)
  const running = await gate.start()
  assert.equal(await running.claim('honest', NOW_S - 2), null)
  assert.equal(await running.claim('honest', NOW_S), null, 'in the very second of the start')
  assert.equal(await running.claim('new', NOW_S + 1), true)
  assert.equal(await running.claim('new', NOW_S + 1), false)
})

test('after a restart no other signer waits for one whose clock is far ahead, unless there are too many', async (t) => {
  for (const [keys, isAccepted] of [
    [256, true],
    [257, null],
  ] as const) {
    const gate = newGate(t)
    const first = await gate.start()
    for (let i = 0; i < keys; i++) assert.equal(await first.claim('a', NOW_S + 50, `fast ${i}`), true)
    gate.nowS += 3
    const next = await gate.start()
    assert.equal(await next.claim('a', NOW_S + 4), isAccepted, `${keys} keys`)
    for (let i = 0; i < keys; i++) assert.equal(await next.claim('a', NOW_S + 50, `fast ${i}`), null)
  }
})

test('the file is written ahead of time: of a steady stream one in two seconds at most', async (t) => {
  const gate = newGate(t)
  const floor = await gate.open()
  const seen = new Set<string>()
  for (let i = 1; i <= 200; i++) {
    await floor.cover('key', NOW_S + Math.floor(i / 10))
    seen.add(readFileSync(gate.file, 'utf8'))
    gate.nowS = NOW_S + Math.floor(i / 10)
  }
  assert.ok(seen.size <= 21 && seen.size >= 8, `${seen.size}`)
})

test('after a file that is damaged, nothing that a clock a minute ahead may have signed is accepted', async (t) => {
  for (const text of [
    '',
    '{',
    'null',
    '{"created_until":"1"}',
    '{"created_until":-1}',
    '{"created_until":1.5}',
    '{"created_until":1,"keys":null}',
    '{"created_until":1,"keys":{"a":"1"}}',
  ]) {
    const gate = newGate(t)
    mkdirSync(gate.folder, { recursive: true })
    writeFileSync(gate.file, text)
    assert.equal((await gate.open()).floorOf('key'), NOW_S + 60, text)
    assert.match(gate.said(), /damaged or cannot be read/)
  }
  const gate = newGate(t)
  gate.hasFile = false
  assert.equal((await gate.open()).floorOf('key'), NOW_S + 60, 'nothing survives')
})

test('a file from the future is obeyed, and the log says until when and what to do', async (t) => {
  const gate = newGate(t)
  mkdirSync(gate.folder, { recursive: true })
  writeFileSync(gate.file, JSON.stringify({ created_until: NOW_S + 3_600 }))
  assert.equal((await gate.open()).floorOf('key'), NOW_S + 3_600)
  assert.match(gate.said(), /2026-11-26T10:00:00.000Z/)
  assert.match(gate.said(), /delete the file/)
})

test('a folder that cannot be written is logged once, and signatures are accepted', async (t) => {
  const gate = newGate(t)
  const running = await gate.start()
  assert.ok(existsSync(gate.file))
  // A file where the folder should be stops even root.
  gate.breakFile()
  gate.nowS += 10
  assert.equal(await running.claim('a', gate.nowS), true)
  gate.nowS += 10
  assert.equal(await running.claim('b', gate.nowS), true)
  assert.equal(gate.said().match(/cannot be written/g)?.length, 1)
})

function newGate(t: Test) {
  const place = mkdtempSync(join(tmpdir(), 'replay-floor-'))
  const folder = join(place, 'data')
  const lines: string[] = []
  const log = createLogTo('info', { write: (line) => void lines.push(line) })
  const opened: ReplayFloor[] = []
  t.teardown(async () => {
    // A use is accepted while the file is still being written for the next ones. Nothing may be written after this.
    for (const floor of opened) await floor.cover('last', gate.nowS + 1_000)
    rmSync(place, { recursive: true })
  })
  const gate = {
    folder,
    file: join(folder, 'signature-uses.json'),
    hasFile: true,
    nowS: NOW_S,
    said: () => lines.join(''),
    breakFile: () => {
      rmSync(folder, { recursive: true })
      writeFileSync(folder, '')
    },
    open: async () => {
      const floor = await ReplayFloor.open(
        {
          file: gate.hasFile ? gate.file : null,
          startedMs: gate.nowS * 1_000,
          skewS: 60,
          nowMs: () => gate.nowS * 1_000,
        },
        log,
      )
      opened.push(floor)
      return floor
    },
    start: async () => {
      const floor = await gate.open()
      const memory = new ReplayMemory((thumbprint) => floor.floorOf(thumbprint))
      return {
        claim: async (id: string, createdS: number, thumbprint = 'key') => {
          await floor.cover(thumbprint, createdS)
          const use = { id, thumbprint, holder: null, createdS, isListed: false }
          return memory.claim({ ...use, goodUntilMs: (createdS + 3_600) * 1_000 }, gate.nowS * 1_000)
        },
      }
    },
  }
  return gate
}
