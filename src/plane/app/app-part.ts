import { isSlug, parseAcceptedApps } from '../../apps/app.ts'
import { Fault } from '../../shared/fault.ts'
import type { SnapshotDocument } from '../snapshot.ts'
import { grow, shrink } from '../snapshot-delta.ts'
import { CLOCKS_APART_MS } from '../snapshot-follower.ts'
import { checkPolicies } from '../snapshot-policies.ts'

type SentApp = NonNullable<SnapshotDocument['apps']>[number]

/** What a Snapshot contains about one app. Proxies with `proxy.app` receive it instead of the parts of all apps. */
export interface PartOfApp {
  /** Of the Snapshot that this part was made for. */
  readonly number: number
  readonly app: string
  /** `null`: the app is not defined. */
  readonly definition: SentApp | null
  /** The policy of the app, as JSON; `null`: it has none. */
  readonly policy: string | null
}

/** The newest Snapshot, for proxies that hold only a part of it. It is sent after the parts that have changed. */
export interface PartsHead {
  readonly number: number
  /** Of the whole Snapshot. */
  readonly hash: string
  readonly madeAtMs: number
  /** Number of the head before it: a proxy that has another one has missed a message. */
  readonly before: number
  /** Number and hash of what all apps share. */
  readonly base: { readonly number: number; readonly hash: string }
}

/** Each part of a Snapshot, by app. */
export function partsOf({ number, apps = [], appPolicies = [] }: SnapshotDocument): Map<string, PartOfApp> {
  const parts = new Map<string, PartOfApp>()
  for (const definition of apps)
    parts.set(definition.id, { number, app: definition.id, definition, policy: null })
  for (const { app, document: policy } of appPolicies)
    parts.set(app, { number, app, definition: parts.get(app)?.definition ?? null, policy })
  return parts
}

export function emptyPart(app: string, number: number): PartOfApp {
  return { number, app, definition: null, policy: null }
}

/** One line of JSON, then the app and its policy, compressed. */
export async function writePart({ number, app, definition, policy }: PartOfApp): Promise<Buffer> {
  const content = Buffer.from(JSON.stringify({ definition, policy }))
  const line = JSON.stringify({ format: FORMAT, number, app, bytes: content.length })
  return Buffer.concat([Buffer.from(`${line}\n`), await shrink(content)])
}

/** Rejects with a Fault if the bytes are not a usable part of that app. */
export async function readPart(message: Buffer, wanted: string): Promise<PartOfApp> {
  if (message.length > MESSAGE_BYTES_MAX) throw invalid(`has ${message.length} bytes`)
  const end = message.subarray(0, LINE_BYTES_MAX).indexOf(LINE_FEED)
  if (end === -1) throw invalid('has no first line')
  const { format, number, app, bytes } = objectIn(message.subarray(0, end))
  if (format !== FORMAT) throw otherFormat(format)
  if (!isNumber(number) || !isSlug(app)) throw invalid('has an invalid first line')
  checkTime(number)
  if (app !== wanted) throw invalid(`is of another app than "${wanted}"`)
  if (!isNumber(bytes) || bytes > CONTENT_BYTES_MAX) throw invalid('is too large')
  const { definition, policy } = objectIn(await grow(message.subarray(end + 1), bytes))
  if (policy !== null && typeof policy !== 'string') throw invalid('has an invalid policy')
  if (definition !== null && idOf(definition) !== app) throw invalid('defines another app')
  const part = { number, app, definition: definition as SentApp | null, policy }
  await checkPolicies({ policy: {}, ...policiesOf(part) }, null)
  return part
}

export function writeHead(head: PartsHead): Buffer {
  return Buffer.from(JSON.stringify({ format: FORMAT, ...head }))
}

/** Throws a Fault if the bytes are not a head. */
export function readHead(message: Buffer): PartsHead {
  if (message.length > LINE_BYTES_MAX) throw invalid(`has ${message.length} bytes`)
  const { format, number, hash, madeAtMs, before, base } = objectIn(message)
  if (format !== FORMAT) throw otherFormat(format)
  const { number: baseNumber, hash: baseHash } = (base ?? {}) as Record<string, unknown>
  if (
    !isNumber(number) ||
    !isNumber(before) ||
    typeof madeAtMs !== 'number' ||
    !isNumber(baseNumber) ||
    !isHash(hash) ||
    !isHash(baseHash)
  )
    throw invalid('has an invalid head')
  checkTime(number)
  return { number, hash, madeAtMs, before, base: { number: baseNumber, hash: baseHash } }
}

/** The Snapshot of a proxy of one app. `base`: what all apps share. */
export function composed(base: SnapshotDocument, head: PartsHead, part: PartOfApp): SnapshotDocument {
  const { number, hash, madeAtMs } = head
  const { apps: _, appPolicies: _other, ...shared } = base
  const { definition } = part
  return {
    ...shared,
    ...{ number, hash, madeAtMs },
    ...(definition !== null && { apps: [definition] }),
    ...policiesOf(part),
  }
}

function idOf(definition: unknown): string {
  try {
    return parseAcceptedApps([definition])[0]!.id
  } catch (error) {
    throw invalid('has an invalid app', error)
  }
}

function policiesOf({ app, policy }: PartOfApp): Pick<SnapshotDocument, 'appPolicies'> {
  return policy === null ? {} : { appPolicies: [{ app, document: policy }] }
}

function objectIn(bytes: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(bytes.toString())
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch (error) {
    throw invalid('is not valid JSON', error)
  }
  throw invalid('is not an object')
}

/** Nothing that is sent later would be newer. */
function checkTime(number: number): void {
  if (number > Date.now() + CLOCKS_APART_MS) throw invalid('has a number that is a time in the future')
}

function isNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isHash(value: unknown): value is string {
  return typeof value === 'string' && HASH.test(value)
}

function otherFormat(format: unknown): Fault {
  return invalid(`is of format ${JSON.stringify(format)?.slice(0, 32)}, and this version reads ${FORMAT}`)
}

function invalid(what: string, cause?: unknown): Fault {
  return new Fault('SNAPSHOT_INVALID', `the part of a Snapshot ${what}`, { cause })
}

/** Increased when earlier versions can no longer read the format. Additions need no increase. */
const FORMAT = 1
/** A policy in a request to the API has at most 1 MiB, as has a message of NATS by default. */
const MESSAGE_BYTES_MAX = 4 * 1024 ** 2
const CONTENT_BYTES_MAX = 16 * 1024 ** 2
const LINE_BYTES_MAX = 1_024
const LINE_FEED = 0x0a
const HASH = /^[0-9a-f]{64}$/
