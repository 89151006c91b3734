import { readFileSync, writeFileSync } from 'node:fs'
import { RECORDED_TIMES, type TestTimes } from './test-times.ts'

/**
 * `node test/groups/report-times.ts FILE` ranks the test files and groups of a run with TEST_TIMES=FILE by the processor
 * seconds that they took. With `--record`, it also records their times for the order of the next runs.
 */
export function timesIn(lines: string): TestTimes[] {
  const times = lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line): TestTimes => JSON.parse(line))
  // Of a file that ran again, the last time counts.
  return [...new Map(times.map((each) => [each.file, each])).values()]
}

export function ranking(times: readonly TestTimes[], count: number): string {
  const seconds = (value: number) => `${value.toFixed(1).padStart(8)} s`
  return times
    .toSorted((one, other) => other.cpuS - one.cpuS)
    .slice(0, count)
    .map(({ file, cpuS, wallS }) => `${seconds(cpuS)} ${seconds(wallS)}  ${file}`)
    .join('\n')
}

/** The wall time of each file, because those that wait decide the end of a run as much as those that compute. */
export function recordOf(times: readonly TestTimes[]): Record<string, number> {
  return Object.fromEntries(
    times
      .filter(({ file, wallS }) => isFile(file) && wallS >= RECORDED_MIN_S)
      .map(({ file, wallS }): [string, number] => [file, Math.round(wallS)])
      .sort(([one], [other]) => (one < other ? -1 : 1)),
  )
}

function isFile(name: string): boolean {
  return name.startsWith('test/') && name.endsWith('.test.ts')
}

const RECORDED_MIN_S = 2
const RANKED = 40

if (import.meta.main) {
  const [file, option] = process.argv.slice(2)
  const times = timesIn(readFileSync(file!, 'utf8'))
  process.stdout.write(`processor        wall\n${ranking(times, RANKED)}\n`)
  const groups = times.filter((each) => !isFile(each.file))
  const alone = times.filter((each) => isFile(each.file))
  for (const [name, some] of [
    ['processes', groups],
    ['files', alone],
  ] as const)
    process.stdout.write(
      `${some.length} ${name}: ${some.reduce((sum, { cpuS }) => sum + cpuS, 0).toFixed(0)} s of the processor\n`,
    )
  if (option === '--record') {
    const before = JSON.parse(readFileSync(RECORDED_TIMES, 'utf8'))
    writeFileSync(RECORDED_TIMES, `${JSON.stringify({ ...before, ...recordOf(times) }, null, 2)}\n`)
  }
}
