import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { listening, makePlace, startApp, startGatehouse } from './contenders.ts'
import { KEEP_ALIVE, type Load, NEW_CONNECTIONS, RESUMED_CONNECTIONS, sampled } from './loads.ts'
import { median, quartile } from './middle.ts'
import { type Column, table } from './table.ts'

/**
 * `npm run bench:regression [-- --base REVISION --before FOLDER --only NAME --starts N --rounds N --seconds N]`: what a
 * request costs, as a multiple of what it costs the last release (the newest tag `v…` that is in this history), both
 * taking turns; fails where that is clearly more. Without a release there is nothing to be compared with, and it says so.
 * Two starts of one build differ by more than two rounds of one start, so small differences need several starts.
 */
const { values } = parseArgs({
  options: {
    base: { type: 'string' },
    before: { type: 'string' },
    only: { type: 'string', default: '' },
    starts: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '9' },
    seconds: { type: 'string', default: '1' },
  },
})
/** Of one build beside itself, a start gave 0.99 to 1.04 for new connections while forty processes waited for a processor. */
const RATIO_MAX = 1.2
const ALL: readonly Load[] = [...KEEP_ALIVE, NEW_CONNECTIONS, RESUMED_CONNECTIONS]
const COMPARED = ALL.filter(({ name }) => name.includes(values.only))
const base = values.base ?? lastRelease()
if (values.before !== undefined) compare(await starts(resolve(values.before)), values.before)
else if (base !== null) compare(await startsOfRevision(base), base)
else process.stdout.write('No release exists yet to compare this version with.\n')

/** What one start says of one load. */
interface Compared {
  /** This version as a multiple of the earlier one. */
  readonly cpu: number
  readonly rate: number
  /** Of this version, for a request. */
  readonly cpuMicros: number
}

type Start = ReadonlyMap<string, Compared>

function compare(ofStarts: readonly Start[], revision: string): void {
  const columns: Column<readonly Compared[]>[] = [
    ['CPU', (each) => median(each.map(({ cpu }) => cpu)).toFixed(3)],
    ['of starts', (each) => range(each.map(({ cpu }) => cpu))],
    ['requests/s', (each) => median(each.map(({ rate }) => rate)).toFixed(3)],
    ['of starts', (each) => range(each.map(({ rate }) => rate))],
    ['CPU µs/request', (each) => median(each.map(({ cpuMicros }) => cpuMicros)).toFixed(1)],
  ]
  const rows = COMPARED.map(({ name }) => [name, ofStarts.map((start) => start.get(name)!)] as const)
  process.stdout.write(table(`as a multiple of ${revision}`, columns, new Map(rows)))
  for (const [name, each] of rows) {
    if (median(each.map(({ cpu }) => cpu)) <= RATIO_MAX) continue
    process.stdout.write(`${name}: more than ${RATIO_MAX} x the CPU, which is too much\n`)
    process.exitCode = 1
  }
}

async function startsOfRevision(revision: string): Promise<readonly Start[]> {
  const folder = mkdtempSync(join(tmpdir(), 'regression-'))
  const earlier = join(folder, 'earlier')
  try {
    build(revision, earlier)
    return await starts(earlier)
  } finally {
    execFileSync('git', ['worktree', 'remove', '--force', earlier])
    rmSync(folder, { recursive: true, force: true })
  }
}

/** This version beside the one that a folder has built. */
async function starts(earlier: string): Promise<readonly Start[]> {
  const ofStarts: Start[] = []
  for (let count = 0; count < Number(values.starts); count++) {
    const folder = mkdtempSync(join(tmpdir(), 'regression-'))
    try {
      ofStarts.push(await start(folder, join(earlier, 'dist/bin.js'), count % 2 === 1))
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
    const each = [...ofStarts.at(-1)!].map(([name, { cpu }]) => `${name} ${cpu.toFixed(3)}`).join(', ')
    process.stderr.write(`start ${count + 1}: CPU ${each}\n`)
  }
  return ofStarts
}

/** Starts differ in which of the two starts first, rounds in which is asked first. */
async function start(folder: string, program: string, isEarlierFirst: boolean): Promise<Start> {
  const place = makePlace(folder, 18_081)
  const app = startApp(place)
  const begin = {
    now: () => ({ port: 18_601, child: startGatehouse(place, 18_601) }),
    before: () => ({
      port: 18_602,
      child: startGatehouse({ ...place, folder: join(folder, 'of-earlier') }, 18_602, { program }),
    }),
  }
  const early = isEarlierFirst ? begin.before() : null
  const now = begin.now()
  const before = early ?? begin.before()
  const children = [app, now.child, before.child]
  try {
    for (const port of [place.appPort, now.port, before.port]) await listening(port)
    const measure = ({ port, child }: typeof now, load: Load) =>
      sampled(child.pid!, () => load.run('https', port, Number(values.seconds), place.loadProcessor))
    const found = new Map<string, Compared>()
    for (const load of COMPARED) {
      const samples = new Map(
        [now, before].map((one) => [one, { cpus: [] as number[], rates: [] as number[] }]),
      )
      for (let round = 0; round <= Number(values.rounds); round++)
        for (const one of round % 2 === 0 ? [now, before] : [before, now]) {
          const { cpuMicros, requests, seconds } = await measure(one, load)
          if (round === 0) continue // it warms up
          samples.get(one)!.cpus.push(cpuMicros)
          samples.get(one)!.rates.push(requests / seconds)
        }
      const [ours, theirs] = [samples.get(now)!, samples.get(before)!]
      const cpuMicros = quartile(ours.cpus)
      const rate = median(ours.rates.map((each, round) => each / theirs.rates[round]!))
      found.set(load.name, { cpu: cpuMicros / quartile(theirs.cpus), rate, cpuMicros })
    }
    return found
  } finally {
    for (const child of children) {
      child.kill()
      await once(child, 'exit')
    }
  }
}

function range(ratios: readonly number[]): string {
  return `${Math.min(...ratios).toFixed(3)}–${Math.max(...ratios).toFixed(3)}`
}

function build(revision: string, into: string): void {
  execFileSync('git', ['worktree', 'add', '--detach', into, revision], { stdio: 'ignore' })
  for (const args of [
    ['ci', '--no-audit', '--no-fund', '--silent'],
    ['run', '--silent', 'build'],
  ])
    execFileSync('npm', args, { cwd: into, stdio: ['ignore', 'ignore', 'inherit'] })
}

function lastRelease(): string | null {
  try {
    const args = ['describe', '--tags', '--abbrev=0', '--match', 'v[0-9]*']
    return execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return null
  }
}
