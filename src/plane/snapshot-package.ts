import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Fault } from '../shared/fault.ts'
import { placeIndex, type SignatureSet } from './signature-set.ts'
import { isSnapshotDocument, type SnapshotDocument } from './snapshot.ts'

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

/**
 * Stores the index as a file in `folder`, unless `known`, signatures whose index is there, are the same. Throws a Fault that
 * says what is wrong. `isFirst`: see placeIndex.
 */
export async function unpackSnapshot(
  bytes: Buffer,
  folder: string,
  isFirst: boolean,
  known: SignatureSet | null = null,
): Promise<SnapshotDocument> {
  const { document, index } = split(bytes)
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

/** The Snapshot in a package, without its index. Throws a Fault. */
export function documentIn(bytes: Buffer): SnapshotDocument {
  return split(bytes).document
}

/** SHA-256, in hexadecimal. */
export function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function split(bytes: Buffer): { readonly document: SnapshotDocument; readonly index: Buffer } {
  const end = bytes.indexOf(LINE_FEED)
  if (end === -1) throw unreadable('has no head')
  let head: unknown
  try {
    head = JSON.parse(bytes.toString('utf8', 0, end))
  } catch (error) {
    throw unreadable('has a head that is not valid JSON', error)
  }
  const format = typeof head === 'object' && head !== null && 'format' in head ? head.format : undefined
  if (format !== FORMAT)
    throw unreadable(`is of format ${JSON.stringify(format)}, and this version reads ${FORMAT}`)
  if (!isSnapshotDocument(head)) throw unreadable('is not a Snapshot')
  const { number, hash, madeAtMs, policy, signatures, campaigns, apps, appPolicies, takesCounts } = head
  const parts = {
    ...(takesCounts === true && { takesCounts }),
    ...(campaigns && { campaigns }),
    ...(apps && { apps }),
    ...(appPolicies && { appPolicies }),
  }
  const document = { number, hash, madeAtMs, policy, signatures, ...parts }
  return { document, index: bytes.subarray(end + 1) }
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
const HASH = /^[0-9a-f]{64}$/
