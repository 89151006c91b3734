import { readdirSync, readFileSync } from 'node:fs'

/** A process of this machine. Linux lists them in /proc, so no program is needed. */
export interface RunningProcess {
  readonly pid: number
  readonly parentPid: number
  /** Its arguments, with a space between them. */
  readonly command: string
}

export function allProcesses(): RunningProcess[] {
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? (readProcess(Number(name)) ?? []) : []))
}

export function childrenOf(pid: number): RunningProcess[] {
  return allProcesses().filter(({ parentPid }) => parentPid === pid)
}

/** The workers of a gateway, without the helpers that it starts for one piece of work. */
export function workersOf(pid: number): number[] {
  return childrenOf(pid).flatMap((child) => (child.command.includes('worker-process') ? child.pid : []))
}

/** `null`: it has ended, or waits for its parent to notice. */
function readProcess(pid: number): RunningProcess | null {
  try {
    const [, state, parentPid] = /\) (\S) (\d+) [^)]*$/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))!
    if (state === 'Z') return null
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
    return { pid, parentPid: Number(parentPid), command }
  } catch {
    return null
  }
}
