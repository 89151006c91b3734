import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { test } from 'tap'
import { examplesOf } from './manual/examples.ts'
import { GATEHOUSE, plainEnvironment, temporaryFolder } from './programs.ts'

/** The first table is of all recordings as they are judged, the second of clients that are held back. */
const PAGE = 'config/guide/recordings.md'
const OURS = 'test/classify/recorded.jsonl'
const SHARED = '../shared/corpus/clients.jsonl'
const skip = !existsSync(SHARED) && `not compared: ${SHARED} is not there`
const tables = examplesOf(PAGE).filter(({ text }) => /^Brier /m.test(text))

test('the manual has two tables of verdicts', async () => {
  assert.equal(tables.length, 2)
})

for (const [at, argv] of [[], ['--folds', '10']].entries())
  test(`evaluate ${argv.join(' ')} prints the table of the manual`, { skip }, async (t) => {
    const env = plainEnvironment(temporaryFolder(t))
    const command = [GATEHOUSE, 'evaluate', OURS, SHARED, ...argv]
    const { stdout } = await promisify(execFile)(process.execPath, command, { env })
    assert.ok(stdout.includes(tables[at]!.text), `${PAGE} has\n${tables[at]!.text}\nand it is\n${stdout}`)
  })
