import { createHash, randomUUID } from 'node:crypto'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { SignatureIndex } from '../classify/known/index/signature-index.ts'
import { Fault } from '../shared/fault.ts'

/**
 * Describes an index to the processes that load it. The bytes stay in the file, because messages of that size
 * block both sides.
 */
export interface IndexFile {
  readonly path: string
  readonly bytes: number
  /** In hexadecimal. */
  readonly sha256: string
}

/**
 * Writes atomically: a reader of `path` finds the old or the new content. With `isLasting`, this holds even
 * after a crash of the machine.
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
 * Reads indexes without blocking the thread. The buffer is a SharedArrayBuffer, although no thread shares it:
 * with any other buffer of this size, V8 collects garbage at once, with long pauses on a large heap. V8 frees
 * shared memory only when it collects for other reasons, so the next index reuses the buffer.
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

  /** Call this after the next index has replaced it and no lookup uses it. */
  retire(index: SignatureIndex): void {
    this.#spare = new WeakRef(index.close())
  }

  #take(bytes: number): ArrayBufferLike {
    const spare = this.#spare?.deref()
    this.#spare = null
    if (spare !== undefined && spare.byteLength >= bytes) return spare
    // Untouched memory costs nothing, and the next index is likely to be a little larger.
    return new SharedArrayBuffer(Math.ceil((bytes * ROOM) / CHUNK_BYTES) * CHUNK_BYTES)
  }
}

/** Reads the described bytes into the start of `buffer`. Rejects any other content. */
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
    if (!stats.isFile()) throw unusable(path, 'INDEX_FILE_WRONG', 'is not a regular file')
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
    throw unusable(path, 'INDEX_FILE_WRONG', `claims ${bytes} bytes; at most ${INDEX_BYTES_MAX}`)
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

/** Makes the file name durable, too. Ignores folders that cannot be synced. */
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

/** Bytes read and hashed per step, without other work in between. */
const CHUNK_BYTES = 256 * 1024
const ROOM = 1.25
/** Larger than any index of the maximum number of signatures. */
const INDEX_BYTES_MAX = 1024 ** 3
