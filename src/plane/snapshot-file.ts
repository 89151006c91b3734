import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { Fault } from '../shared/fault.ts'
import type { SnapshotDocument } from './snapshot.ts'
import { grow, shrink } from './snapshot-delta.ts'
import { digestOf, documentIn, packSnapshot } from './snapshot-package.ts'

/**
 * A Snapshot in a file of its own: one line that describes it, then its package, compressed. `gatehouse snapshot export`
 * writes such a file, and a proxy reads it as `bus.bootstrap_file`.
 */
export interface SnapshotFile {
  /** Without the index. */
  readonly document: SnapshotDocument
  /** From `packSnapshot`. */
  readonly package: Buffer
  /** SHA-256 of the package, in hexadecimal. */
  readonly digest: string
}

export async function packSnapshotFile(document: SnapshotDocument): Promise<Buffer> {
  return packedFile(await packSnapshot(document))
}

/** The same for an existing package. */
export async function packedFile(whole: Buffer): Promise<Buffer> {
  const packed = await shrink(whole)
  const head = { format: FORMAT, sha256: digestOf(packed), packed_bytes: packed.length, bytes: whole.length }
  return Buffer.concat([Buffer.from(`${MAGIC} ${JSON.stringify(head)}\n`), packed])
}

/** Throws a Fault that names the file, what is wrong with it and what to do. */
export async function readSnapshotFile(path: string): Promise<SnapshotFile> {
  const bytes = await bytesIn(path)
  try {
    return await parseSnapshotFile(bytes)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    throw new Fault(error.code, `${path} ${error.message}`, { cause: error })
  }
}

/** Throws a Fault that says what is wrong with the file. */
export async function parseSnapshotFile(file: Buffer): Promise<SnapshotFile> {
  const end = file.subarray(0, HEAD_BYTES_MAX).indexOf(LINE_FEED)
  const line = end === -1 ? '' : file.toString('latin1', 0, end)
  if (!line.startsWith(`${MAGIC} `)) throw invalid('is not a Snapshot file', WRITE_ONE)
  const { sha256, bytes, packedBytes } = headIn(line.slice(MAGIC.length + 1))
  const packed = file.subarray(end + 1)
  if (packed.length !== packedBytes)
    throw invalid(`has ${packed.length} bytes after its first line instead of ${packedBytes}`, COPY_AGAIN)
  if (digestOf(packed) !== sha256) throw invalid('is damaged: its checksum is wrong', COPY_AGAIN)
  const whole = await grow(packed, bytes).catch((error: unknown) => {
    throw invalid('is damaged: it cannot be decompressed', COPY_AGAIN, error)
  })
  const document = await documentIn(whole)
  if (document.number < 1 || !(document.madeAtMs >= 0 && document.madeAtMs <= TIME_MS_MAX))
    throw invalid('has an invalid number or time', WRITE_ONE)
  return { document, package: whole, digest: digestOf(whole) }
}

interface Head {
  /** Hash of the bytes after the head line, in hexadecimal. */
  readonly sha256: string
  readonly bytes: number
  readonly packedBytes: number
}

function headIn(json: string): Head {
  let head: unknown
  try {
    head = JSON.parse(json)
  } catch (error) {
    throw invalid('has an invalid first line', WRITE_ONE, error)
  }
  if (typeof head !== 'object' || head === null) throw invalid('has an invalid first line', WRITE_ONE)
  const { format, sha256, bytes, packed_bytes: packedBytes } = head as Record<string, unknown>
  if (format !== FORMAT)
    throw invalid(
      `has format ${JSON.stringify(format) ?? 'none'}; this version reads format ${FORMAT}`,
      'write it with the same version of Gatehouse',
    )
  if (typeof sha256 !== 'string' || !DIGEST.test(sha256) || !isSize(bytes) || !isSize(packedBytes))
    throw invalid('has an invalid first line', WRITE_ONE)
  return { sha256, bytes, packedBytes }
}

function isSize(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0 && (value as number) <= SNAPSHOT_FILE_BYTES_MAX
}

async function bytesIn(path: string): Promise<Buffer> {
  let file: FileHandle
  try {
    // O_NONBLOCK: opening a pipe would wait for its writer.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    throw unreadable(path, error)
  }
  try {
    const stats = await file.stat()
    // Reading a device might never end.
    if (!stats.isFile()) throw new Fault('SNAPSHOT_INVALID', `${path} is not a file`)
    if (stats.size > SNAPSHOT_FILE_BYTES_MAX)
      throw new Fault(
        'SNAPSHOT_INVALID',
        `${path} has ${stats.size} bytes; a Snapshot file has ${SNAPSHOT_FILE_BYTES_MAX} at most`,
      )
    return await file.readFile()
  } catch (error) {
    if (error instanceof Fault) throw error
    throw unreadable(path, error)
  } finally {
    await file.close()
  }
}

function unreadable(path: string, error: unknown): Fault {
  const { code } = error as NodeJS.ErrnoException
  return new Fault('FILE_UNREADABLE', `${path} cannot be read (${code})`, { cause: error })
}

function invalid(what: string, fix: string, cause?: unknown): Fault {
  return new Fault('SNAPSHOT_INVALID', `${what}; ${fix}`, { cause })
}

const MAGIC = 'gatehouse-snapshot'
/** Increased when earlier versions can no longer read the format. */
const FORMAT = 1
/** For the file and for the package in it. A million signatures take some 40 MB. */
export const SNAPSHOT_FILE_BYTES_MAX = 256 * 1024 ** 2
const HEAD_BYTES_MAX = 1_024
/** Largest value of Date. */
const TIME_MS_MAX = 8.64e15
const LINE_FEED = 0x0a
const DIGEST = /^[0-9a-f]{64}$/
const WRITE_ONE = 'write one with "gatehouse snapshot export"'
const COPY_AGAIN = 'copy or export it again'
