import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Fault } from '../shared/fault.ts'
import { type ByteRange, memberRange } from '../shared/json-bytes.ts'
import { placeIndex, type SignatureSet } from './signature-set.ts'
import { isSnapshotDocument, type SnapshotDocument } from './snapshot.ts'
import { AppPolicyReader, type AppPolicyText } from './snapshot-policies.ts'

/**
 * A Snapshot in the form sent between machines: a line of JSON, then the bytes of its index. On one machine
 * the index stays in its file.
 */
export async function packSnapshot(document: SnapshotDocument): Promise<Buffer> {
  const { number, hash, madeAtMs, policy, signatures, campaigns, apps, appPolicies, takesCounts } = document
  const said = signatures === null ? null : saidOf(signatures)
  const own = { format: FORMAT, number, hash, madeAtMs, policy }
  const head = JSON.stringify({ ...own, signatures: said, campaigns, apps, appPolicies, takesCounts })
  const index = signatures === null ? NOTHING : await readFile(signatures.index.path)
  return Buffer.concat([Buffer.from(`${head}\n`), index])
}

/** What is known of the Snapshot before, and is not read again. */
export interface UnpackOptions {
  /** Signatures whose index is in the folder. */
  readonly known?: SignatureSet | null
  readonly appPolicies?: AppPolicyReader
}

/**
 * Stores the index as a file in `folder`, unless the signatures are the known ones. Throws a Fault that says what is wrong.
 * `isFirst`: see placeIndex.
 */
export async function unpackSnapshot(
  bytes: Buffer,
  folder: string,
  isFirst: boolean,
  { known = null, appPolicies = new AppPolicyReader(null) }: UnpackOptions = {},
): Promise<SnapshotDocument> {
  const { document, index } = await split(bytes, appPolicies)
  const { signatures } = document
  if (signatures === null) return document
  const said = signatures.index
  if (index.length !== said.bytes || digestOf(index) !== said.sha256)
    throw unreadable('has another index than it says')
  if (signatures.hash === known?.hash && said.sha256 === known.index.sha256)
    return { ...document, signatures: known }
  if (!HASH.test(signatures.hash)) throw unreadable('has signatures with no hash')
  // It need not survive a crash: the next start extracts it from the package again.
  const file = await placeIndex(signatures.hash, index, { folder, isFirst, isLasting: false })
  return { ...document, signatures: { ...signatures, index: file } }
}

/** The Snapshot in a package, without its index. Rejects with a Fault. */
export async function documentIn(bytes: Buffer): Promise<SnapshotDocument> {
  return (await split(bytes, new AppPolicyReader(null))).document
}

/** SHA-256, in hexadecimal. */
export function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

async function split(
  bytes: Buffer,
  reader: AppPolicyReader,
): Promise<{ readonly document: SnapshotDocument; readonly index: Buffer }> {
  const end = bytes.indexOf(LINE_FEED)
  if (end === -1) throw unreadable('has no head')
  const line = bytes.subarray(0, end)
  const list = appPoliciesIn(line)
  let head: unknown
  let policies: readonly AppPolicyText[] = []
  try {
    head = JSON.parse(withoutItems(line, list))
    if (list !== null) policies = await reader.read(line, list)
  } catch (error) {
    if (error instanceof Fault) throw error
    throw unreadable('has a head that is not valid JSON', error)
  }
  const format = typeof head === 'object' && head !== null && 'format' in head ? head.format : undefined
  if (format !== FORMAT)
    throw unreadable(`is of format ${JSON.stringify(format)}, and this version reads ${FORMAT}`)
  const whole = list === null ? head : { ...(head as object), appPolicies: policies }
  if (!isSnapshotDocument(whole)) throw unreadable('is not a Snapshot')
  const { number, hash, madeAtMs, policy, signatures, campaigns, apps, appPolicies, takesCounts } = whole
  const parts = {
    ...(takesCounts === true && { takesCounts }),
    ...(campaigns && { campaigns }),
    ...(apps && { apps }),
    ...(appPolicies && { appPolicies }),
  }
  const document = { number, hash, madeAtMs, policy, signatures, ...parts }
  return { document, index: bytes.subarray(end + 1) }
}

/** `null`: no list, so that it is parsed with the rest. */
function appPoliciesIn(line: Buffer): ByteRange | null {
  const range = memberRange(line, 'appPolicies')
  return range !== null && line[range.start] === OPEN_BRACKET ? range : null
}

function withoutItems(line: Buffer, list: ByteRange | null): string {
  if (list === null) return line.toString()
  return `${line.toString('utf8', 0, list.start)}[]${line.toString('utf8', list.end)}`
}

/** Without the local path of the index. */
function saidOf(signatures: SignatureSet): SignatureSet {
  const { hash, pieces, weights, fingerprints, index } = signatures
  return { hash, pieces, weights, fingerprints, index: { ...index, path: '' } }
}

function unreadable(what: string, cause?: unknown): Fault {
  return new Fault('SNAPSHOT_INVALID', `a Snapshot ${what}`, { cause })
}

/** Increased when earlier versions can no longer read the format. Additions need no increase. */
const FORMAT = 1
const NOTHING = Buffer.alloc(0)
const LINE_FEED = 0x0a
const OPEN_BRACKET = 0x5b
const HASH = /^[0-9a-f]{64}$/
