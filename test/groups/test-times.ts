import { appendFileSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'

/** The variable that names a file for the times. Set, each test file adds a line of JSON to it: see report-times.ts. */
export const TIMES_VARIABLE = 'TEST_TIMES'

/** What a test file, or a group of them, has taken. */
export interface TestTimes {
  readonly file: string
  /** Processor seconds of its process and of the children that it has waited for. Servers that run anyway are not in it. */
  readonly cpuS: number
  readonly wallS: number
}

/** The seconds of test files in a whole run. They decide the order of the next one. */
export const RECORDED_TIMES = 'test/groups/recorded-times.json'

/** Starts to measure a file. The function that it returns writes the line. */
export function measure(file: string): () => void {
  const path = process.env[TIMES_VARIABLE]
  const startS = { cpu: cpuS(), wall: performance.now() / 1000 }
  return () => {
    if (path === undefined) return
    const times: TestTimes = {
      file,
      cpuS: rounded(cpuS() - startS.cpu),
      wallS: rounded(performance.now() / 1000 - startS.wall),
    }
    appendFileSync(path, `${JSON.stringify(times)}\n`)
  }
}

/** Measures this process from its first to its last moment. */
export function measureProcess(): void {
  const file = relative('.', process.argv[1]!)
  process.once('exit', () => {
    const times: TestTimes = { file, cpuS: rounded(cpuS()), wallS: rounded(performance.now() / 1000) }
    appendFileSync(process.env[TIMES_VARIABLE]!, `${JSON.stringify(times)}\n`)
  })
}

function cpuS(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6 + childrenS()
}

/** Linux counts their time once they have ended. */
function childrenS(): number {
  const fields = readFileSync('/proc/self/stat', 'latin1')
    .replace(/^.*\) /s, '')
    .split(' ')
  return (Number(fields[CHILDREN_USER]) + Number(fields[CHILDREN_SYSTEM])) / TICKS_PER_S
}

function rounded(seconds: number): number {
  return Math.round(seconds * 100) / 100
}

/** Their place in /proc/self/stat after the name of the program: see proc_pid_stat(5). */
const CHILDREN_USER = 13
const CHILDREN_SYSTEM = 14
const TICKS_PER_S = 100
