import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Owner } from '../../test/store/databases.ts'
import type { Ledger } from '../soak/ledger.ts'
import type { Kind as RequestKind } from '../soak/plan.ts'
import { SoakProcesses } from '../soak/processes.ts'
import type { Rounds } from './rounds.ts'

/** What a run is made in. */
export interface Place extends Owner {
  readonly folder: string
  readonly processes: SoakProcesses
}

/** What it starts is gone when it has ended; and it ends, also by a signal, and where something never comes. */
export async function run(
  { seconds, keep }: { readonly seconds: number; readonly keep: boolean },
  work: (place: Place) => Promise<readonly string[]>,
): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-chaos-'))
  const processes = new SoakProcesses()
  const ends: (() => unknown)[] = [() => processes.kill()]
  const teardown = (end: () => unknown) => void ends.push(end)
  const lateS = seconds + LATE_S
  let isWell = false
  const late = setTimeout(() => processes.end(`it is still not done after ${lateS} s`), lateS * 1000)
  try {
    const problems = await Promise.race([work({ folder, processes, teardown }), processes.crash])
    writeFileSync(join(folder, 'problems.txt'), problems.join('\n'))
    isWell = problems.length === 0
    return isWell ? 0 : 1
  } finally {
    clearTimeout(late)
    // Whatever one of them comes to, the others have their turn.
    for (const end of ends.toReversed())
      try {
        await end()
      } catch (error) {
        process.stderr.write(`${error}\n`)
      }
    // A failure of one request in thousands may not happen again: the log has what led to it.
    if (keep || !isWell) say(`kept: ${folder}`)
    else rmSync(folder, { recursive: true, force: true })
  }
}

/** Round after round, each with a line about its result. */
export async function play<Kind extends string>(
  rounds: Rounds<Kind>,
  seconds: number,
  said: { readonly ledger: Ledger; readonly problems: readonly string[]; lastMissing(): string | null },
  afterEach: () => unknown = () => undefined,
): Promise<void> {
  const startedMs = performance.now()
  const secondsGone = () => (performance.now() - startedMs) / 1000
  const { ledger } = said
  let known = 0
  while (secondsGone() < seconds) {
    const { name, recoveredMs } = await rounds.next()
    const bad = [...ledger.wrong, ...said.problems]
    const counts = `${ledger.total('right')} right, ${ledger.total('lost')} lost, ${bad.length} wrong`
    const last = said.lastMissing() === null ? '' : ` (last: ${said.lastMissing()})`
    say(`${Math.round(secondsGone())} s: ${name}, well again after ${recoveredMs} ms${last}; ${counts}`)
    if (bad.length > known) say(`  wrong by now: ${bad.join('; ')}`)
    known = bad.length
    await afterEach()
  }
}

export function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** What the soak does beside these (apps that break off, answer early or never, garbage) would hide what is looked for. */
export const REQUESTS: readonly RequestKind[] = [
  ...(['get', 'head', 'no-content', 'not-modified', 'download', 'slow-read', 'upload'] as const),
  ...(['slow-app', 'trailers', 'echo', 'events', 'policy', 'leaves-in-request', 'leaves-in-answer'] as const),
]
/** The app hangs for less; on a machine that has much else to do a connection takes its time. */
export const TIMEOUT_S = { head: 20, connect: 20 }
export const STARTED_MS_MAX = 60_000
/** For the last round, and for every check afterwards. */
const LATE_S = 240
