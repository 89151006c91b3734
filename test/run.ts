import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { COUNTS_VARIABLE, closingLine, sumOf } from './closing-line.ts'

/**
 * `npm run test:all`: first what `npm test` runs, then the files named `*.full.test.ts`. Both run to their end,
 * whatever fails. The last line has the sums of both, and the exit code is 1 if either failed.
 */
const COUNTS_FILE = '.tap/counts.jsonl'

async function run(files: readonly string[]): Promise<boolean> {
  const env = { E2E_GATEHOUSE: 'dist/bin.js', ...process.env, [COUNTS_VARIABLE]: COUNTS_FILE }
  const child = spawn('tap', files, { env, stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  return code === 0
}

mkdirSync('.tap', { recursive: true })
writeFileSync(COUNTS_FILE, '')
const outcomes = [await run([]), await run(globSync('test/**/*.full.test.ts').sort())]
const hasFailed = outcomes.includes(false)
const { passed, failed, skipped } = sumOf(readFileSync(COUNTS_FILE, 'utf8'))
// A run that ends before its reporter has counted is a failure too.
process.stdout.write(`\n${closingLine({ passed, failed: hasFailed ? failed || 1 : failed, skipped })}\n`)
process.exitCode = hasFailed ? 1 : 0
