import { Fault } from '../shared/fault.ts'

/** Tells all proxies at once that there is a new Snapshot. */
export interface Announcement {
  readonly number: number
  readonly hash: string
  readonly madeAtMs: number
  /** SHA-256 of the packed Snapshot, in hexadecimal. Package stores use it as the name. */
  readonly digest: string
  /** Size of the package. */
  readonly bytes: number
  /** For proxies that have the previous Snapshot; `null`: a delta would save little. */
  readonly delta: { readonly from: string; readonly bytes: Buffer } | null
}

/** One line of JSON, followed by the bytes of the delta. */
export function writeAnnouncement({ delta, ...said }: Announcement): Buffer {
  const line = JSON.stringify({ format: FORMAT, ...said, from: delta?.from ?? null })
  return Buffer.concat([Buffer.from(`${line}\n`), delta?.bytes ?? NOTHING])
}

/** Throws a Fault if the bytes are not an announcement. */
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
  throw unreadable('is not an object')
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
