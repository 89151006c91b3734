import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { parse } from 'yaml'
import { COUNTS_VARIABLE, type Counts, closingLine, type Outcome, sumOf } from './closing-line.ts'
import { aloneOf, groupsOf, writeGroups } from './groups/groups.ts'

/**
 * `npm test` runs every test file but those named `*.full.test.ts`, or the given files. With `--all`, properties have
 * all of their runs (time-box.ts), and the full tests run afterwards, whatever fails. The last line has the sums of both,
 * and the exit code is 1 if either failed.
 *
 * If few files of a whole run failed, each runs once more with the machine to itself. One that passes then depends on
 * what runs beside it: it is named as unstable, which is a fault to mend, and does not fail the run.
 */
const COUNTS_FILE = '.tap/counts.jsonl'
/** Of a process that runs several files, on a machine that does much else. */
const GROUP_TIMEOUT_S = 1_500
/** Short tests wait for databases more than they compute: 259 s instead of 342 s with three, on two processors. */
const GROUP_JOBS = 5
/** With more failures than this, the fault is in what was changed. */
const UNSTABLE_MAX = 3

async function run(files: readonly string[]): Promise<boolean> {
  const properties = isAll ? { PROPERTIES: 'whole' } : {}
  const env = { E2E_GATEHOUSE: 'dist/bin.js', ...properties, ...process.env, [COUNTS_VARIABLE]: COUNTS_FILE }
  const child = spawn('tap', files, { env, stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  return code === 0
}

mkdirSync('.tap', { recursive: true })
writeFileSync(COUNTS_FILE, '')
const args = process.argv.slice(2)
const isAll = args.includes('--all')
const full = globSync('test/**/*.full.test.ts').sort()
const short = globSync('test/**/*.test.ts')
  .filter((file) => !full.includes(file))
  .sort()
const outcomes: boolean[] = []
if (args.length > 0 && !isAll) outcomes.push(await run(args))
else
  outcomes.push(
    await run([`--jobs=${GROUP_JOBS}`, `--timeout=${GROUP_TIMEOUT_S}`, ...writeGroups(groupsOf(short))]),
  )
// Those that need the machine to themselves run last: before one starts, tap waits for all that run.
const serial: readonly string[] = parse(readFileSync('.taprc', 'utf8')).serial
const parallel = full.filter((file) => !serial.includes(file))
if (isAll) outcomes.push(await run([...writeGroups(aloneOf(parallel)), ...serial]))
const first = counted()
let last: Counts = { ...first, failed: outcomes.includes(false) ? first.failed || 1 : first.failed }
const isWhole = args.length === 0 || isAll
if (isWhole && last.failed > 0 && isFew(first.failedFiles)) last = await runAgain(first)
process.stdout.write(`\n${closingLine(last)}\n`)
process.exitCode = last.failed > 0 ? 1 : 0

function isFew(files: readonly string[]): boolean {
  return files.length > 0 && files.length <= UNSTABLE_MAX && files.every((file) => existsSync(file))
}

async function runAgain({ passed, failed, skipped, failedFiles }: Outcome): Promise<Counts> {
  process.stdout.write(`\nOnce more, with the machine to themselves: ${failedFiles.join(' ')}\n`)
  writeFileSync(COUNTS_FILE, '')
  if (!(await run(['--jobs=1', `--timeout=${GROUP_TIMEOUT_S}`, ...failedFiles])))
    return { passed, failed, skipped }
  for (const file of failedFiles)
    process.stdout.write(`UNSTABLE ${file}: it failed beside others, and passed by itself\n`)
  return { passed: passed + failed, failed: 0, skipped }
}

function counted(): Outcome {
  return sumOf(readFileSync(COUNTS_FILE, 'utf8'))
}
