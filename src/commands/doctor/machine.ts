import { readFileSync } from 'node:fs'
import { constrainedMemory } from 'node:process'
import { version } from '../../shared/package-files.ts'
import { bad, type CheckResult, good, warning } from './finding.ts'

/** Checks versions, the clock, and process limits. */
export function lookAtMachine(role: string, nowMs = Date.now()): readonly CheckResult[] {
  return [versions(), clock(nowMs), ...(role === 'manage' ? [] : openFiles()), ...memory()]
}

function versions(): CheckResult {
  const { node, openssl } = process.versions
  const what = `Gatehouse ${version()}, Node ${node}, OpenSSL ${openssl}`
  return Number(node.split('.')[0]) === NODE
    ? good('versions', what)
    : warning('versions', what, `use Node ${NODE}: it is what this version is tested with`)
}

function clock(nowMs: number): CheckResult {
  const now = new Date(nowMs).toISOString()
  return nowMs < BUILT_MS
    ? bad(
        'clock',
        `says ${now}, which is over`,
        'set it, and have it kept right (NTP): certificates, tokens and signatures go by it',
      )
    : good('clock', `says ${now}`)
}

/** Each client connection needs a file descriptor, and another one to the upstream. */
function openFiles(): readonly CheckResult[] {
  const limit = softLimit()
  if (limit === null) return []
  if (limit >= FILES_MIN) return [good('open files', `${limit} for a process`)]
  const fix = `ulimit -n ${FILES_WANTED}, LimitNOFILE= of the unit, or --ulimit nofile of the container`
  const what = `${limit} for a process: enough for some ${Math.floor((limit - FILES_OWN) / 2)} connections`
  return [warning('open files', what, fix)]
}

function softLimit(): number | null {
  try {
    const [, limit] = /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return limit === undefined || limit === 'unlimited' ? null : Number(limit)
  } catch {
    // Not on Linux.
    return null
  }
}

function memory(): readonly CheckResult[] {
  const limit = constrainedMemory()
  if (limit === undefined || limit === 0 || limit >= MEMORY_WANTED) return []
  const mebibytes = Math.floor(limit / MEBIBYTE)
  const fix = 'give it more, or start fewer workers (proxy.workers): each takes 80 to 150 MiB'
  return [warning('memory', `${mebibytes} MiB for this container`, fix)]
}

const NODE = 24
/** The clock is wrong if it shows an earlier time: this version did not exist then. */
const BUILT_MS = Date.UTC(2026, 0, 1)
const FILES_MIN = 8_192
const FILES_WANTED = 65_536
/** Used by a process without clients. */
const FILES_OWN = 64
const MEBIBYTE = 1_048_576
const MEMORY_WANTED = 256 * MEBIBYTE
