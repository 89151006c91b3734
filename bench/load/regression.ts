import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { listening, makePlace, startApp, startGatehouse } from './contenders.ts'
import { KEEP_ALIVE, type Load, NEW_CONNECTIONS, sampled } from './loads.ts'

/**
 * `npm run bench:regression [-- --base REVISION --starts N --rounds N --seconds N]`: what a request costs, as a multiple
 * of what it costs the last release (the newest tag `v…` that is in this history), both taking turns; fails where that is
 * clearly more. Without a release there is nothing to be compared with, and it says so. Two starts of one build differ
 * by more than two rounds of one start, so small differences need several starts.
 */
const { values } = parseArgs({
  options: {
    base: { type: 'string' },
    starts: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '9' },
    seconds: { type: 'string', default: '1' },
  },
})
/** Of one build beside itself, the middle of nine rounds was 0.95 to 1.06 on a busy machine. */
const RATIO_MAX = 1.2
const COMPARED: readonly Load[] = [...KEEP_ALIVE, NEW_CONNECTIONS]
const base = values.base ?? lastRelease()
if (base === null) process.stdout.write('There is no release yet that this version could be compared with.\n')
else await compare(base)

async function compare(revision: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'regression-'))
  const earlier = join(folder, 'earlier')
  try {
    build(revision, earlier)
    const ofStarts: ReadonlyMap<string, number>[] = []
    for (let start = 0; start < Number(values.starts); start++)
      ofStarts.push(await ratiosIn(folder, join(earlier, 'dist/bin.js'), start))
    for (const { name } of COMPARED) {
      const ratios = ofStarts.map((ratiosOf) => ratiosOf.get(name)!)
      const ratio = middle(ratios)
      const isWorse = ratio > RATIO_MAX
      const each = ratios.length > 1 ? ` (starts: ${ratios.map((each) => each.toFixed(2)).join(' ')})` : ''
      process.stdout.write(
        `${name}: ${ratio.toFixed(2)} x ${revision}${each}${isWorse ? ', which is too much' : ''}\n`,
      )
      if (isWorse) process.exitCode = 1
    }
  } finally {
    execFileSync('git', ['worktree', 'remove', '--force', earlier])
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * By name of the load: the middle of what the rounds of one start have given. Starts differ in who starts first, rounds
 * in who is asked first.
 */
async function ratiosIn(
  folder: string,
  program: string,
  start: number,
): Promise<ReadonlyMap<string, number>> {
  const place = makePlace(folder, 18_081)
  const app = startApp(place)
  const starts = [
    () => ({ port: 18_601, child: startGatehouse(place, 18_601) }),
    () => ({
      port: 18_602,
      child: startGatehouse({ ...place, folder: earlierData(folder) }, 18_602, { program }),
    }),
  ] as const
  const second = start % 2 === 0 ? null : starts[1]()
  const now = starts[0]()
  const before = second ?? starts[1]()
  const children = [app, now.child, before.child]
  try {
    for (const port of [place.appPort, now.port, before.port]) await listening(port)
    const cost = async ({ port, child }: typeof now, load: Load) => {
      const run = () => load.run('https', port, Number(values.seconds), place.loadProcessor)
      return (await sampled(child.pid!, run)).cpuMicros
    }
    const middles = new Map<string, number>()
    for (const load of COMPARED) {
      const ratios: number[] = []
      for (let round = 0; round <= Number(values.rounds); round++) {
        const costs = new Map<typeof now, number>()
        for (const each of round % 2 === 0 ? [now, before] : [before, now])
          costs.set(each, await cost(each, load))
        if (round > 0) ratios.push(costs.get(now)! / costs.get(before)!) // the first warms up
      }
      middles.set(load.name, middle(ratios))
    }
    return middles
  } finally {
    for (const child of children) {
      child.kill()
      await once(child, 'exit')
    }
  }
}

function middle(ratios: readonly number[]): number {
  return ratios.toSorted((one, other) => one - other)[ratios.length >> 1]!
}

function earlierData(folder: string): string {
  return join(folder, 'of-earlier')
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
