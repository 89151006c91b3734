import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'

/** What starts Gatehouse: the sources or, in `npm test`, what it has built before, which starts with a third of the work. */
export const GATEHOUSE = resolve(process.env['E2E_GATEHOUSE'] ?? 'src/bin.js')

/** Set by .ci/run, which installs all programs: a test whose program is missing then fails instead of being skipped. */
export const ARE_REQUIRED = process.env['E2E_PROGRAMS'] === 'required'

/** The Debian package of each program: test/programs.txt. */
const PACKAGES = new Map(
  readFileSync(new URL('../programs.txt', import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => /^[^#]/.test(line))
    .map((line) => line.split(' ') as [program: string, debianPackage: string]),
)

/** Says how to get a program that is not installed; `false` if it is. A path is our own Node, or a file to look for. */
export function missing(program: string): string | false {
  if (program.includes('/')) return existsSync(program) ? false : `${program} does not exist`
  const debianPackage = PACKAGES.get(program)
  if (debianPackage === undefined) throw new Error(`test/programs.txt has no line for ${program}`)
  return spawnSync('sh', ['-c', 'command -v "$0"', program], { stdio: 'ignore' }).status === 0
    ? false
    : `${program} is not installed: apt-get install ${debianPackage}`
}

/** The reason to skip a test: the first of these programs that is missing. `false` in CI, where the test then fails. */
export function skipped(...programs: readonly string[]): string | false {
  if (ARE_REQUIRED) return false
  for (const program of programs) {
    const reason = missing(program)
    if (reason !== false) return reason
  }
  return false
}

/** The same for a library: a file that its Debian package has. */
export function skippedLibrary(file: string, debianPackage: string): string | false {
  return ARE_REQUIRED || existsSync(file)
    ? false
    : `${debianPackage} is not installed: apt-get install ${debianPackage}`
}

export function noCapture(): string | false {
  return (
    skipped('tcpdump') ||
    (process.getuid?.() === 0 ? false : 'run as root: only root may capture on loopback')
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
