import { Fault } from '../shared/fault.ts'

/** Says that there is a new Snapshot, to everybody at once. */
export interface Announcement {
  readonly number: number
  readonly hash: string
  readonly madeAtMs: number
  /** SHA-256 of the Snapshot as it is packed, in hexadecimal; its name where packages are kept. */
  readonly digest: string
  /** Of the package. */
  readonly bytes: number
  /** For who has the one before; `null`: it would be hardly smaller than all of it. */
  readonly delta: { readonly from: string; readonly bytes: Buffer } | null
}

/** A line of JSON, and after it the bytes of the delta. */
export function writeAnnouncement({ delta, ...said }: Announcement): Buffer {
  const line = JSON.stringify({ format: FORMAT, ...said, from: delta?.from ?? null })
  return Buffer.concat([Buffer.from(`${line}\n`), delta?.bytes ?? NOTHING])
}

/** Throws a Fault where these bytes are none. */
export function readAnnouncement(message: Buffer): Announcement {
  const end = message.indexOf(LINE_FEED)
  const said = parsed(message.toString('utf8', 0, Math.max(end, 0)))
  const { format, number, hash, madeAtMs, digest, bytes, from } = said
  if (format !== FORMAT)
    throw unreadable(`is of format ${JSON.stringify(format)}, and this version reads ${FORMAT}`)
  if (
    !isCount(number) ||
    typeof hash !== 'string' ||
    typeof madeAtMs !== 'number' ||
    !isDigest(digest) ||
    !isCount(bytes) ||
    (from !== null && !isDigest(from))
  )
    throw unreadable('does not say what it should')
  const delta = from === null ? null : { from, bytes: message.subarray(end + 1) }
  return { number, hash, madeAtMs, digest, bytes, delta }
}

function parsed(line: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(line)
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch (error) {
    throw unreadable('has no line of JSON', error)
  }
  throw unreadable('is no object')
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isDigest(value: unknown): value is string {
  return typeof value === 'string' && DIGEST.test(value)
}

function unreadable(what: string, cause?: unknown): Fault {
  return new Fault('SNAPSHOT_INVALID', `what was said of a Snapshot ${what}`, { cause })
}

const FORMAT = 1
const NOTHING = Buffer.alloc(0)
const LINE_FEED = 0x0a
const DIGEST = /^[0-9a-f]{64}$/
