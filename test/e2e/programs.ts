import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'

/** What starts Gatehouse: the sources or, where it has been built, what starts in half the time and is what users have. */
export const GATEHOUSE = resolve(process.env['E2E_GATEHOUSE'] ?? 'src/bin.js')

/** Set where the programs that the tests talk with have been installed: then none of them may be missing. */
export const ARE_REQUIRED = process.env['E2E_PROGRAMS'] === 'required'

/** What to say of a program that is not there; `false` where it is. */
export function missing(program: string): string | false {
  if (program.includes('/')) return false // our own Node, by its path
  return spawnSync('sh', ['-c', 'command -v "$0"', program], { stdio: 'ignore' }).status === 0
    ? false
    : `${program} is not installed`
}

/** Why a test that needs this program is skipped: never where it has to be there. */
export function skipped(program: string): string | false {
  return ARE_REQUIRED ? false : missing(program)
}

export function noCapture(): string | false {
  return (
    missing('tcpdump') || (process.getuid?.() === 0 ? false : 'only root may capture what goes over loopback')
  )
}

/** What a program runs with: no proxies and settings of the user, and no Node options of tap's. */
export function plainEnvironment(folder: string, more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const { PATH, NODE_COMPILE_CACHE } = process.env
  return { PATH, HOME: folder, LANG: 'C', ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }), ...more }
}

export function temporaryFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-e2e-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

export interface Ran {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program to its end, which comes by force when it takes much too long. */
export async function run(
  program: string,
  argv: readonly string[],
  { env, input }: { env: NodeJS.ProcessEnv; input?: string | Buffer },
): Promise<Ran> {
  const child = spawn(program, argv, { env, timeout: PROGRAM_MS, killSignal: 'SIGKILL' })
  endWithProcess(child)
  child.stdin.on('error', () => undefined).end(input)
  const [stdout, stderr, [status]] = await Promise.all([
    text(child.stdout.setEncoding('latin1')),
    text(child.stderr),
    once(child, 'exit'),
  ])
  return { status, stdout, stderr }
}

/** Waits for a program to say this. */
export function heard(stream: Readable, wanted: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = ''
    stream.on('data', (chunk) => {
      said += chunk
      if (said.includes(wanted)) resolve()
    })
    stream.on('close', () => reject(new Error(`no ${wanted} in ${said}`)))
  })
}

/** Ends it with the test, and in any case with the process of the test, which may be cut short. */
export function endWith(t: Test, child: ChildProcess): void {
  endWithProcess(child)
  t.teardown(() => stop(child))
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

/** Not before a test that may start it again. */
export function endWithProcess(child: ChildProcess): void {
  RUNNING.set(child, () => child.kill('SIGKILL'))
  child.once('exit', () => RUNNING.delete(child))
}

/** The same for a child that was spawned as `detached`, with all its children: workers outlive a server that is killed. */
export function endGroupWith(t: Test, child: ChildProcess): void {
  const end = () => killGroup(child.pid!)
  RUNNING.set(child, end)
  t.teardown(() => {
    RUNNING.delete(child)
    end()
  })
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // None of them is left.
  }
}

/** How each is ended. */
const RUNNING = new Map<ChildProcess, () => void>()
const endAll = (): void => {
  for (const end of RUNNING.values()) end()
}
process.once('exit', endAll)
// SIGALRM is how tap ends a test that takes too long.
for (const signal of ['SIGALRM', 'SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => {
    endAll()
    process.kill(process.pid, signal)
  })
}
const PROGRAM_MS = 50_000
