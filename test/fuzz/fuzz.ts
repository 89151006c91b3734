import { createHash, randomInt } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { fuzz } from './fuzzer.ts'
import { corpusFolder, seedsOf } from './seeds.ts'
import { TARGETS } from './targets.ts'

/**
 * `npm run fuzz -- TARGET [--seconds N] [--seed N] [--keep]`. What breaks the target is written to its corpus and the
 * exit code is 1; with --keep, what reached new code and is short is written there too.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '120' },
    seed: { type: 'string', default: `${randomInt(1, 2 ** 31)}` },
    keep: { type: 'boolean', default: false },
  },
})
/** Of what is committed, so that the corpus stays small. */
const KEPT_BYTES_MAX = 2000

const [name = ''] = positionals
const target = TARGETS[name]
if (target === undefined) {
  process.stderr.write(`no target "${name}"; there are ${Object.keys(TARGETS).join(', ')}\n`)
  process.exit(2)
}

const seed = Number(values.seed)
const milliseconds = Number(values.seconds) * 1000
process.stdout.write(`${name}: ${values.seconds} s from seed ${seed}\n`)
const plan = { target, seeds: seedsOf(name), seed, milliseconds }
const { executions, perSecond, kept, failure } = await fuzz(plan)
process.stdout.write(`${executions} executions, ${perSecond}/s; ${kept.length} inputs reached new code\n`)
if (values.keep) for (const bytes of kept) if (bytes.length <= KEPT_BYTES_MAX) save(bytes)
if (failure !== null) {
  process.stdout.write(`broken by ${save(failure.bytes)}\n${failure.error.stack}\n`)
  process.exitCode = 1
}

function save(bytes: Buffer): string {
  const folder = corpusFolder(name)
  mkdirSync(folder, { recursive: true })
  const file = new URL(createHash('sha256').update(bytes).digest('hex').slice(0, 16), folder)
  writeFileSync(file, bytes)
  return fileURLToPath(file)
}
