import { Fault } from '../shared/fault.ts'
import type { WorkerStatus } from './worker-status.ts'

/** What a proxy reports about itself every few seconds. */
export interface Heartbeat {
  /** Stable as long as its data folder exists. */
  readonly id: string
  readonly host: string
  readonly version: string
  /** SHA-256 of its settings, in hexadecimal: equal for proxies with equal settings. */
  readonly configHash: string
  readonly startedAtMs: number
  /** Interval between heartbeats. */
  readonly everyMs: number
  /** The newest Snapshot that the proxy has; `null`: none yet. */
  readonly snapshot: { readonly number: number; readonly hash: string; readonly madeAtMs: number } | null
  /** Where the Snapshot comes from: bundled with Gatehouse, the disk, or the bus. */
  readonly source: 'builtin' | 'disk' | 'bus'
  /** A newer Snapshot that the proxy cannot use. */
  readonly refused: { readonly number: number; readonly why: string } | null
  readonly workers: readonly WorkerStatus[]
  readonly sightings: {
    /** In transit, or on disk while the bus is down. */
    readonly waiting: number
    readonly dropped: number
  }
  /** The proxy shuts down; do not report it as missing. */
  readonly isLast: boolean
}

export function writeHeartbeat(heartbeat: Heartbeat): Buffer {
  return Buffer.from(JSON.stringify({ format: FORMAT, ...heartbeat }))
}

/** Throws a Fault if the bytes are not a heartbeat. Drops members of later versions. */
export function readHeartbeat(bytes: Uint8Array): Heartbeat {
  if (bytes.length > BYTES_MAX) throw unreadable('is too long')
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(bytes).toString('utf8'))
  } catch (error) {
    throw unreadable('is not valid JSON', error)
  }
  const said = objectIn(value, 'heartbeat')
  if (said['format'] !== FORMAT) throw unreadable('is of another format')
  return {
    id: matching(said['id'], 'id', ID),
    host: textIn(said['host'], 'host'),
    version: textIn(said['version'], 'version'),
    configHash: matching(said['configHash'], 'configHash', HASH),
    startedAtMs: numberIn(said['startedAtMs'], 'startedAtMs'),
    everyMs: Math.min(Math.max(numberIn(said['everyMs'], 'everyMs'), EVERY_MS_MIN), EVERY_MS_MAX),
    snapshot: orNull(said['snapshot'], snapshotIn),
    source: sourceIn(said['source']),
    refused: orNull(said['refused'], refusedIn),
    workers: listIn(said['workers'], 'workers', WORKERS_MAX).map(workerIn),
    sightings: sightingsIn(said['sightings']),
    isLast: said['isLast'] === true,
  }
}

function snapshotIn(value: unknown): NonNullable<Heartbeat['snapshot']> {
  const { number, hash, madeAtMs } = objectIn(value, 'snapshot')
  return {
    number: numberIn(number, 'number'),
    hash: textIn(hash, 'hash'),
    madeAtMs: numberIn(madeAtMs, 'madeAtMs'),
  }
}

function refusedIn(value: unknown): NonNullable<Heartbeat['refused']> {
  const { number, why } = objectIn(value, 'refused')
  return { number: numberIn(number, 'number'), why: textIn(why, 'why') }
}

function sightingsIn(value: unknown): Heartbeat['sightings'] {
  const { waiting, dropped } = objectIn(value, 'sightings')
  return { waiting: numberIn(waiting, 'waiting'), dropped: numberIn(dropped, 'dropped') }
}

function workerIn(value: unknown): WorkerStatus {
  const { number, pid, state, sinceMs, snapshot, dropped, unready } = objectIn(value, 'worker')
  if (state !== 'starting' && state !== 'serving' && state !== 'gone')
    throw unreadable('has a worker in no state')
  return {
    number: numberIn(number, 'number'),
    pid: orNull(pid, (some) => numberIn(some, 'pid')),
    state,
    sinceMs: orNull(sinceMs, (some) => numberIn(some, 'sinceMs')),
    snapshot: orNull(snapshot, (some) => numberIn(some, 'snapshot')),
    dropped: numberIn(dropped, 'dropped'),
    unready: listIn(unready, 'unready', REASONS_MAX).map((reason) => textIn(reason, 'unready')),
  }
}

function sourceIn(value: unknown): Heartbeat['source'] {
  if (value === 'builtin' || value === 'disk' || value === 'bus') return value
  throw unreadable('has a Snapshot from nowhere')
}

function orNull<Value>(value: unknown, read: (some: unknown) => Value): Value | null {
  return value === null ? null : read(value)
}

function objectIn(value: unknown, name: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>
  throw unreadable(`has a ${name} that is not an object`)
}

function listIn(value: unknown, name: string, max: number): readonly unknown[] {
  if (Array.isArray(value) && value.length <= max) return value
  throw unreadable(`has ${name} that are no list of at most ${max}`)
}

function textIn(value: unknown, name: string): string {
  if (typeof value === 'string') return value.slice(0, TEXT_MAX)
  throw unreadable(`has a ${name} that is not text`)
}

function matching(value: unknown, name: string, pattern: RegExp): string {
  if (typeof value === 'string' && pattern.test(value)) return value
  throw unreadable(`has an invalid ${name}`)
}

function numberIn(value: unknown, name: string): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number
  throw unreadable(`has a ${name} that is not a whole number`)
}

function unreadable(what: string, cause?: unknown): Fault {
  return new Fault('HEARTBEAT_INVALID', `what a proxy says of itself ${what}`, { cause })
}

/** Increased when earlier versions can no longer read the format. */
const FORMAT = 1
/** Usable as a part of a NATS subject. */
const ID = /^[0-9a-z-]{1,64}$/
const HASH = /^[0-9a-f]{64}$/
const BYTES_MAX = 262_144
const TEXT_MAX = 512
const WORKERS_MAX = 256
const REASONS_MAX = 64
const EVERY_MS_MIN = 100
const EVERY_MS_MAX = 600_000
