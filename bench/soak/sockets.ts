import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** One TCP socket of a process, IPv4. */
export interface TcpSocket {
  readonly localPort: number
  readonly remotePort: number
  readonly isListening: boolean
}

/** Of a process that is there; none of one that is not. */
export function tcpSocketsOf(pid: number): readonly TcpSocket[] {
  const inodes = new Set(descriptorsOf(pid).flatMap((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? []))
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [, local, remote, state, , , , , , inode] = line.trim().split(/\s+/)
      if (inode === undefined || !inodes.has(inode)) return []
      return { localPort: portIn(local), remotePort: portIn(remote), isListening: state === LISTEN }
    })
}

/** What its file descriptors are. */
export function descriptorsOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((name) => linkAt(`/proc/${pid}/fd/${name}`))
  } catch {
    return []
  }
}

export function isAlive(pid: number): boolean {
  return ![null, 'Z', 'X'].includes(stateOf(pid))
}

/** As ps has it: R, S, T, Z; `null` where there is no such process. */
export function stateOf(pid: number): string | null {
  try {
    return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1] ?? null
  } catch {
    return null
  }
}

/** When it began, in ticks of the kernel; `null` where there is no such process, or only what is left of one. */
export function startTicksOf(pid: number): string | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
    return fields[0] === 'Z' || fields[0] === 'X' ? null : fields[19]!
  } catch {
    return null
  }
}

/** The words of its command line; empty where there is no such process. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

export function residentBytesOf(pid: number): number | null {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
  } catch {
    return null
  }
}

function linkAt(path: string): string[] {
  try {
    return [readlinkSync(path)]
  } catch {
    return [] // closed since it was listed
  }
}

function portIn(address = ''): number {
  return Number.parseInt(address.split(':')[1] ?? '0', 16)
}

const LISTEN = '0A'
