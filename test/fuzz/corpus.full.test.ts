import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { firstFailure, fuzz } from './fuzzer.ts'
import { corpusOf, seedsOf } from './seeds.ts'
import { TARGETS } from './targets.ts'

/** The same in each run, so that what fails is what was changed: `npm run fuzz` looks for more. */
const SEED = Number(process.env['FUZZ_SEED'] ?? 20_261_124)

for (const [name, target] of Object.entries(TARGETS)) {
  test(`${name}: what was found before stays mended`, async () => {
    for (const { name: file, bytes } of corpusOf(name)) {
      const failure = await firstFailure(target, [bytes])
      assert.equal(failure, null, `corpus/${name}/${file}: ${failure?.error.stack}`)
    }
  })

  test(`${name}: nothing new in half a second from seed ${SEED}`, async () => {
    const { executions, failure } = await fuzz({
      target,
      seeds: seedsOf(name),
      seed: SEED,
      milliseconds: 500,
    })
    const input = failure?.bytes.toString('hex')
    assert.equal(
      failure,
      null,
      `npm run fuzz -- ${name} --seed ${SEED}: ${input} gives ${failure?.error.stack}`,
    )
    assert.ok(executions > 0)
  })
}

test('the fuzzer finds what throws and what does not end, and makes it short', async () => {
  const seeds = [Buffer.from('some bytes to begin with'), Buffer.alloc(100)]
  const throws = (bytes: Buffer) => assert.ok(!bytes.includes('be') || bytes.includes('to'), 'broken')
  const { failure } = await fuzz({ target: throws, seeds, seed: 1, milliseconds: 60_000 })
  assert.equal(failure?.bytes.toString(), 'be')
  assert.match(failure!.error.message, /broken/)

  const hangs = (bytes: Buffer) => {
    while (bytes.length === 2);
  }
  const found = await firstFailure(hangs, [Buffer.alloc(1), Buffer.alloc(2), Buffer.alloc(3)], 50)
  assert.equal(found?.bytes.length, 2)
  assert.match(found!.error.message, /timed out/)
})

test('the fuzzer keeps what reaches new code, and the same seed finds it again', async () => {
  const plan = { target: TARGETS['ja4x']!, seeds: [Buffer.from('3000', 'hex')], seed: 7, milliseconds: 300 }
  const [first, second] = [await fuzz(plan), await fuzz(plan)] as const
  assert.ok(first.kept.length > 0)
  assert.deepEqual(second.kept[0], first.kept[0])
})

test('without a target it knows, the command lists those there are', async () => {
  const main = fileURLToPath(new URL('fuzz.ts', import.meta.url))
  const { status, stderr } = spawnSync(process.execPath, [main, 'wier'], { encoding: 'utf8' })
  assert.equal(status, 2)
  for (const name of Object.keys(TARGETS)) assert.match(stderr, new RegExp(name))
})
