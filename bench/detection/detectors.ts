import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** Where the packages of the other detectors are. */
export const PACKAGES = new URL('../../node_modules/.cache/bench-detection/', import.meta.url).pathname

export interface Detector {
  readonly name: string
  readonly url: string
  /** Sent as a bearer token. */
  readonly key: string | null
  /** Its process, if it runs on this machine and its time is to be measured. */
  readonly pid: number | null
}

interface Local {
  readonly name: string
  readonly script: string
  /** The npm package that it needs. */
  readonly needs: string | null
}

/** What `npm run bench:detection` starts. */
export const LOCAL: readonly Local[] = [
  { name: 'nothing', script: 'adapters/nothing.ts', needs: null },
  { name: 'gatehouse', script: '../manage/server.ts', needs: null },
  ...['isbot', 'crawler-user-agents', 'ua-parser-js', 'device-detector-js'].map((name) => ({
    name,
    script: `adapters/${name}.ts`,
    needs: name,
  })),
]

/** Why a detector cannot run here; `null` if it can. */
export function missing({ needs }: Local): string | null {
  if (needs === null) return null
  const isThere = existsSync(join(PACKAGES, 'node_modules', needs))
  return isThere ? null : `${needs} is not installed: npm run bench:detection installs it`
}

/**
 * Installs the packages of bench/detection/package.json, once. Below the node_modules of Gatehouse, where
 * neither its checks nor its own packages find them.
 */
export function install(): void {
  const lock = new URL('package-lock.json', import.meta.url)
  const copy = join(PACKAGES, 'package-lock.json')
  if (existsSync(copy) && readFileSync(copy, 'utf8') === readFileSync(lock, 'utf8')) return
  mkdirSync(PACKAGES, { recursive: true })
  copyFileSync(new URL('package.json', import.meta.url), join(PACKAGES, 'package.json'))
  copyFileSync(lock, copy)
  const argv = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--silent']
  const { status } = spawnSync('npm', argv, { cwd: PACKAGES, stdio: 'inherit' })
  if (status === 0) return
  // So that the next run tries again.
  rmSync(copy)
  process.stderr.write('The packages of bench/detection could not be installed.\n')
}

/** Starts a detector as a process. `stop()` ends it. */
export async function start({ name, script }: Local): Promise<Detector & { stop: () => void }> {
  const path = new URL(script, import.meta.url).pathname
  const child = spawn(process.execPath, [path, 'manage'], { stdio: ['pipe', 'pipe', 'inherit'] })
  const { port, key } = JSON.parse(await firstLine(child)) as { port: number; key?: string }
  return {
    name,
    url: `http://127.0.0.1:${port}`,
    key: key ?? null,
    pid: child.pid!,
    stop: () => child.stdin.end(),
  }
}

/** Processor time of a process so far, in ms: in steps of 10. */
export function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(stat[11]) + Number(stat[12])) * 10
}

async function firstLine(child: ChildProcess): Promise<string> {
  for await (const line of createInterface(child.stdout!)) return line
  throw new Error('the detector ended before it listened')
}
