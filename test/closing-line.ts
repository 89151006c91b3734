import { appendFileSync } from 'node:fs'
import { inspect } from 'node:util'
import { type FinalResults, Parser, type Result } from 'tap-parser'
import { GROUPS_FOLDER } from './groups/groups.ts'

/**
 * tap's reporter (see .taprc). TAP comes in on stdin; out goes a line for each finished file with the diagnostics of
 * what failed in it, then every skipped test with its reason, the names of all failures and, alone on the last line,
 * the `N passed, N failed, N skipped` that CI reads. The exit code is tap's own.
 *
 * Counted are the leaves: each assertion made through tap, and each test() that makes none because it uses
 * node:assert. Points that only sum up others are not counted; a file that dies is one failure, a TODO is skipped.
 */
function report(parser: Parser): void {
  let passed = 0
  const skipped: string[] = []
  const failed: Failure[] = []
  let told = 0
  const tell = (): void => {
    for (; told < failed.length; told++) print(`\n  ${failed[told]!.diagnostics}\n`)
  }
  const skip = (result: Result): unknown => skipped.push(describeSkip(result))

  passOnOutput(parser)
  const tellFile = (file: Result): void => {
    print(`${file.ok ? 'ok    ' : 'FAILED'} ${file.name}${took(file)}`)
    tell()
  }
  parser.on('assert', (file: Result) => {
    if (!isGroup(file.name) || !file.ok) tellFile(file)
  })
  parser.on('child', (child: Parser) => {
    if (isGroup(child.name)) child.on('assert', tellFile)
  })
  parser.on('pass', () => passed++)
  parser.on('fail', (result: Result) => failed.push(describeFailure(result)))
  parser.on('skip', skip)
  parser.on('todo', skip)
  parser.on('complete', (results: FinalResults) => {
    const isWhole = results.ok && results.count > 0
    if (!isWhole && failed.length === 0)
      failed.push({ name: 'the run itself', diagnostics: inspect(results) })
    tell()
    for (const text of skipped) print(`skipped ${text}`)
    for (const { name } of failed) print(`FAILED ${shorten(name)}`)
    const counts = { passed, failed: failed.length, skipped: skipped.length }
    const failedFiles = [...new Set(failed.map(({ name }) => name.replace(/ > .*/s, '')))]
    const file = process.env[COUNTS_VARIABLE]
    if (file === undefined) print(`\n${closingLine(counts)}`)
    else appendFileSync(file, `${JSON.stringify({ ...counts, failedFiles } satisfies Outcome)}\n`)
  })
}

/** Files that share a process are the tests of a group (see groups/groups.ts). They are told as if each had its own. */
function isGroup(name: string): boolean {
  return name.startsWith(`${GROUPS_FOLDER}/`)
}

/** The full name of a test, from its file on. */
function nameOf({ fullname }: Result): string {
  const separator = fullname.indexOf(' > ')
  return isGroup(fullname) && separator > 0 ? fullname.slice(separator + 3) : fullname
}

/** What a test wrote to stdout by itself, which is not part of the protocol. */
function passOnOutput(parser: Parser): void {
  parser.on('extra', (text: string) => process.stdout.write(text))
  parser.on('child', passOnOutput)
}

function took(file: Result): string {
  return file.time === null ? '' : ` (${(file.time / 1000).toFixed(1)} s)`
}

function describeSkip(result: Result): string {
  const reason = [result.skip, result.todo].find((directive) => typeof directive === 'string')
  const name = nameOf(result)
  return reason === undefined ? name : `${name}: ${reason}`
}

function describeFailure(result: Result): Failure {
  const diagnostics: Record<string, unknown> = result.diag ?? {}
  const lines = Object.entries(diagnostics)
    .filter(([key]) => !TAP_INTERNALS.has(key))
    .map(([key, value]) => `${key}: ${indent(typeof value === 'string' ? value.trimEnd() : inspect(value))}`)
  const name = nameOf(result)
  return { name, diagnostics: indent([name, ...lines].join('\n')) }
}

function indent(text: string): string {
  return text.replaceAll('\n', '\n    ')
}

/** The name of an assertion may be its whole difference. */
function shorten(name: string): string {
  return name.length > 160 ? `${name.slice(0, 160)}…` : name
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** The variable that names a file for the counts. Set, they are written there and no closing line is printed. */
export const COUNTS_VARIABLE = 'TEST_COUNTS'

export interface Counts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

export interface Outcome extends Counts {
  readonly failedFiles: readonly string[]
}

/** The line that CI reads. */
export function closingLine({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`
}

/** The sums of the lines that runs have added to the file. */
export function sumOf(lines: string): Outcome {
  const sum = { passed: 0, failed: 0, skipped: 0, failedFiles: [] as string[] }
  for (const line of lines.split('\n').filter((each) => each !== '')) {
    const { passed, failed, skipped, failedFiles } = JSON.parse(line) as Outcome
    sum.passed += passed
    sum.failed += failed
    sum.skipped += skipped
    sum.failedFiles.push(...failedFiles)
  }
  return sum
}

interface Failure {
  readonly name: string
  readonly diagnostics: string
}

/** Diagnostics about tap and not about the failure; `source` repeats what the stack already points to. */
const TAP_INTERNALS = new Set([
  'at',
  'source',
  'stdio',
  'cwd',
  'externalID',
  'command',
  'args',
  'tapCaught',
  'test',
])

if (import.meta.main) {
  const parser = new Parser()
  report(parser)
  process.stdin.pipe(parser)
}
