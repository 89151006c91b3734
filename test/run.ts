import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { COUNTS_VARIABLE, closingLine, sumOf } from './closing-line.ts'
import { writeGroups } from './groups/groups.ts'

/**
 * `npm test` runs every test file but those named `*.full.test.ts`, or the given files. With `--all`, the full tests
 * run afterwards, whatever fails. The last line has the sums of both, and the exit code is 1 if either failed.
 */
const COUNTS_FILE = '.tap/counts.jsonl'
/** Of a process that runs several files, on a machine that does much else. */
const GROUP_TIMEOUT_S = 1_500

async function run(files: readonly string[]): Promise<boolean> {
  const env = { E2E_GATEHOUSE: 'dist/bin.js', ...process.env, [COUNTS_VARIABLE]: COUNTS_FILE }
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
else outcomes.push(await run([`--timeout=${GROUP_TIMEOUT_S}`, ...writeGroups(short)]))
if (isAll) outcomes.push(await run(full))
const hasFailed = outcomes.includes(false)
const { passed, failed, skipped } = sumOf(readFileSync(COUNTS_FILE, 'utf8'))
// A run that ends before its reporter has counted is a failure too.
process.stdout.write(`\n${closingLine({ passed, failed: hasFailed ? failed || 1 : failed, skipped })}\n`)
process.exitCode = hasFailed ? 1 : 0
