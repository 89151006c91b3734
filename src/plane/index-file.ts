import { createHash, randomUUID } from 'node:crypto'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { SignatureIndex } from '../classify/signature-index.ts'
import { Fault } from '../fault.ts'

/** What is said of an index to those who load it: the bytes stay in their file, for messages of that size stall both sides. */
export interface IndexFile {
  readonly path: string
  readonly bytes: number
  /** In hexadecimal. */
  readonly sha256: string
}

/** Whoever reads `path` finds what was there or all of this, also when the machine stops half-way. */
export async function writeIndexFile(path: string, bytes: Uint8Array): Promise<IndexFile> {
  const unfinished = `${path}.${randomUUID()}.tmp`
  const hash = createHash('sha256')
  try {
    const file = await open(unfinished, 'wx', 0o600)
    try {
      for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
        const chunk = bytes.subarray(at, at + CHUNK_BYTES)
        hash.update(chunk)
        await file.writeFile(chunk)
      }
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(unfinished, path)
    await syncFolder(dirname(path))
  } catch (error) {
    await rm(unfinished, { force: true })
    throw unusable(path, 'INDEX_FILE_UNWRITABLE', `cannot be written (${codeOf(error)})`, error)
  }
  return { path, bytes: bytes.length, sha256: hash.digest('hex') }
}

/** Reads an index while the thread goes on with its work. Throws a Fault that says what is wrong with the file. */
export async function loadIndexFile(said: IndexFile): Promise<SignatureIndex> {
  const opening = SignatureIndex.opening(await readIndexFile(said))
  for (;;) {
    const step = opening.next()
    if (step.done) return step.value
    await turn()
  }
}

/** The bytes, and only those that were said. */
export async function readIndexFile({ path, bytes, sha256 }: IndexFile): Promise<ArrayBuffer> {
  if (!Number.isSafeInteger(bytes) || bytes < 0 || bytes > INDEX_BYTES_MAX)
    throw unusable(path, 'INDEX_FILE_WRONG', `is said to have ${bytes} bytes; at most ${INDEX_BYTES_MAX}`)
  let file: FileHandle
  try {
    file = await open(path)
  } catch (error) {
    throw unusable(path, 'INDEX_FILE_UNREADABLE', `cannot be opened (${codeOf(error)})`, error)
  }
  try {
    const { size } = await file.stat()
    if (size !== bytes)
      throw unusable(path, 'INDEX_FILE_WRONG', `has ${size} bytes, and ${bytes} were said: write it again`)
    return await readAll(file, path, bytes, sha256)
  } catch (error) {
    if (error instanceof Fault) throw error
    throw unusable(path, 'INDEX_FILE_UNREADABLE', `cannot be read (${codeOf(error)})`, error)
  } finally {
    await file.close()
  }
}

async function readAll(file: FileHandle, path: string, bytes: number, sha256: string): Promise<ArrayBuffer> {
  const buffer = new ArrayBuffer(bytes)
  const hash = createHash('sha256')
  for (let at = 0; at < bytes; ) {
    const chunk = new Uint8Array(buffer, at, Math.min(CHUNK_BYTES, bytes - at))
    const { bytesRead } = await file.read(chunk, 0, chunk.length, at)
    if (bytesRead === 0) throw unusable(path, 'INDEX_FILE_WRONG', `ends after ${at} of ${bytes} bytes`)
    hash.update(chunk.subarray(0, bytesRead))
    at += bytesRead
  }
  if (hash.digest('hex') !== sha256)
    throw unusable(path, 'INDEX_FILE_WRONG', 'does not have the SHA-256 that was said: write it again')
  return buffer
}

/** The name is as lasting as the bytes. Where a folder cannot be synced, it is as the file system has it. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path).catch(() => null)
  await folder?.sync().catch(() => undefined)
  await folder?.close()
}

function unusable(path: string, code: string, what: string, cause?: unknown): Fault {
  return new Fault(code, `the index of signatures ${path} ${what}`, { cause })
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : error
}

/** Read and hashed in one go, with no other work in between. */
const CHUNK_BYTES = 1024 * 1024
/** The largest index of the most signatures has less. */
const INDEX_BYTES_MAX = 1024 ** 3
