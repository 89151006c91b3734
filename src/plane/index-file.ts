import { createHash, randomUUID } from 'node:crypto'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { SignatureIndex } from '../classify/known/index/signature-index.ts'
import { Fault } from '../shared/fault.ts'

/** What is said of an index to those who load it: the bytes stay in their file, for messages of that size stall both sides. */
export interface IndexFile {
  readonly path: string
  readonly bytes: number
  /** In hexadecimal. */
  readonly sha256: string
}

/**
 * Whoever reads `path` finds what was there or all of this, also when the machine stops half-way; unless `isLasting`,
 * the machine's stop may take it away.
 */
export async function writeIndexFile(path: string, bytes: Uint8Array, isLasting = true): Promise<IndexFile> {
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
      if (isLasting) await file.sync()
    } finally {
      await file.close()
    }
    await rename(unfinished, path)
    if (isLasting) await syncFolder(dirname(path))
  } catch (error) {
    await rm(unfinished, { force: true })
    throw unusable(path, 'INDEX_FILE_UNWRITABLE', `cannot be written (${codeOf(error)})`, error)
  }
  return { path, bytes: bytes.length, sha256: hash.digest('hex') }
}

/**
 * Reads indexes while the thread goes on with its work. Memory of this size is asked for as shared, though nobody shares
 * it: any other makes V8 collect garbage there and then, in pauses that a large heap makes long. Shared memory in turn
 * is given back only when garbage is collected for other reasons; until then the next index is read into it.
 */
export class IndexLoader {
  #spare: WeakRef<ArrayBufferLike> | null = null

  /** Throws a Fault that says what is wrong with the file. */
  async load(file: IndexFile): Promise<SignatureIndex> {
    checkSize(file)
    const buffer = this.#take(file.bytes)
    try {
      await readIndexFile(file, buffer)
      const opening = SignatureIndex.opening(buffer, file.bytes)
      for (;;) {
        const step = opening.next()
        if (step.done) return step.value
        await turn()
      }
    } catch (error) {
      this.#spare = new WeakRef(buffer)
      throw error
    }
  }

  /** After the next has taken its place: nobody is found in it any more. */
  retire(index: SignatureIndex): void {
    this.#spare = new WeakRef(index.close())
  }

  #take(bytes: number): ArrayBufferLike {
    const spare = this.#spare?.deref()
    this.#spare = null
    if (spare !== undefined && spare.byteLength >= bytes) return spare
    // Room that is never written to takes no memory, and the next index is likely to be a little larger.
    return new SharedArrayBuffer(Math.ceil((bytes * ROOM) / CHUNK_BYTES) * CHUNK_BYTES)
  }
}

/** Reads into the beginning of `buffer` what was said, and nothing else. */
export async function readIndexFile(said: IndexFile, buffer: ArrayBufferLike): Promise<void> {
  checkSize(said)
  const { path, bytes } = said
  let file: FileHandle
  try {
    file = await open(path)
  } catch (error) {
    throw unusable(path, 'INDEX_FILE_UNREADABLE', `cannot be opened (${codeOf(error)})`, error)
  }
  try {
    const stats = await file.stat()
    if (!stats.isFile()) throw unusable(path, 'INDEX_FILE_WRONG', 'is no file')
    if (stats.size !== bytes)
      throw unusable(
        path,
        'INDEX_FILE_WRONG',
        `has ${stats.size} bytes, and ${bytes} were said: write it again`,
      )
    await readAll(file, said, buffer)
  } catch (error) {
    if (error instanceof Fault) throw error
    throw unusable(path, 'INDEX_FILE_UNREADABLE', `cannot be read (${codeOf(error)})`, error)
  } finally {
    await file.close()
  }
}

function checkSize({ path, bytes }: IndexFile): void {
  if (!Number.isSafeInteger(bytes) || bytes < 0 || bytes > INDEX_BYTES_MAX)
    throw unusable(path, 'INDEX_FILE_WRONG', `is said to have ${bytes} bytes; at most ${INDEX_BYTES_MAX}`)
}

async function readAll(
  file: FileHandle,
  { path, bytes, sha256 }: IndexFile,
  buffer: ArrayBufferLike,
): Promise<void> {
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
const CHUNK_BYTES = 256 * 1024
const ROOM = 1.25
/** The largest index of the most signatures has less. */
const INDEX_BYTES_MAX = 1024 ** 3
