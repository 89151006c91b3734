import { type FileHandle, open } from 'node:fs/promises'
import { pipeline, Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { Fault } from '../../shared/fault.ts'
import type { Io } from '../../terminal/io.ts'
import { unreadable } from '../../terminal/unreadable.ts'

/** The bytes of a capture. A chunk is valid until the next one is requested. */
export interface CaptureSource {
  readonly chunks: AsyncIterable<Buffer>
  /** Whether it can be read a second time: a pipe cannot. */
  readonly isFile: boolean
  /** Bytes read and total bytes; `null` if the total is unknown. */
  progress(): { readonly read: number; readonly size: number } | null
}

/**
 * Opens a file, or standard input for `-`; unpacks gzip and zstd. With `following`, reading continues at the
 * end of the file until aborted.
 */
export async function openCapture(
  file: string,
  io: Io,
  following: AbortSignal | null,
): Promise<CaptureSource> {
  if (file === '-')
    return { chunks: unpacked(streamChunks(io.stdin, following)), isFile: false, progress: () => null }
  const { handle, isFile, size } = await openFile(file)
  const place = { read: 0 }
  const hasEnd = isFile && following === null
  return {
    chunks: unpacked(fileChunks(handle, place, following)),
    isFile,
    progress: () => (hasEnd ? { read: place.read, size } : null),
  }
}

async function openFile(file: string): Promise<{ handle: FileHandle; isFile: boolean; size: number }> {
  try {
    const handle = await open(file, 'r')
    const stats = await handle.stat()
    if (!stats.isDirectory()) return { handle, isFile: stats.isFile(), size: stats.size }
    await handle.close()
  } catch (error) {
    throw unreadable(error)
  }
  throw new Fault('UNREADABLE', 'is a folder')
}

/**
 * After an interrupt, a silent stream is closed after a short time in which the writer of a pipe may end it.
 */
async function* streamChunks(stream: Readable, following: AbortSignal | null): AsyncGenerator<Buffer> {
  const giveUp = () => setTimeout(() => stream.destroy(), LAST_WORDS_MS).unref()
  following?.addEventListener('abort', giveUp, { once: true })
  try {
    yield* stream as AsyncIterable<Buffer>
  } catch (error) {
    if (following?.aborted !== true) throw unreadable(error)
  } finally {
    following?.removeEventListener('abort', giveUp)
  }
}

/** Double buffering: while one chunk is processed, the next is read into the other buffer. */
async function* fileChunks(
  handle: FileHandle,
  place: { read: number },
  following: AbortSignal | null,
): AsyncGenerator<Buffer> {
  const buffers = [Buffer.allocUnsafeSlow(CHUNK_BYTES), Buffer.allocUnsafeSlow(CHUNK_BYTES)] as const
  let current: 0 | 1 = 0
  let reading = readInto(buffers[current], handle)
  try {
    for (;;) {
      const chunk = await reading
      if (chunk instanceof Fault) throw chunk
      if (chunk.length === 0) {
        if (following === null || following.aborted) return
        await sleep(POLL_MS, undefined, { signal: following }).catch(() => undefined)
      }
      place.read += chunk.length
      current = current === 0 ? 1 : 0
      reading = readInto(buffers[current], handle)
      if (chunk.length > 0) yield chunk
    }
  } finally {
    await reading
    await handle.close()
  }
}

/** Returns a failure as a value, because it may occur before it is awaited. */
function readInto(buffer: Buffer, handle: FileHandle): Promise<Buffer | Fault> {
  return handle
    .read(buffer, 0, buffer.length, null)
    .then(({ bytesRead }) => buffer.subarray(0, bytesRead), unreadable)
}

async function* unpacked(chunks: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  try {
    let head = Buffer.alloc(0)
    while (head.length < MAGIC_BYTES) {
      const { done, value } = await chunks.next()
      if (done) break
      head = Buffer.concat([head, value])
    }
    const packing = PACKINGS.find(({ magic }) => head.subarray(0, magic.length).equals(magic))
    if (packing === undefined) {
      yield head
      yield* chunks
    } else {
      yield* unpack(packing, head, chunks)
    }
  } finally {
    await chunks.return(undefined)
  }
}

async function* unpack(
  packing: Packing,
  head: Buffer,
  chunks: AsyncGenerator<Buffer>,
): AsyncGenerator<Buffer> {
  const packed = Readable.from(copies(head, chunks), { objectMode: false })
  const plain = packing.create()
  pipeline(packed, plain, () => undefined) // `plain` reports its errors
  try {
    yield* plain as AsyncIterable<Buffer>
  } catch (error) {
    if (error instanceof Fault) throw error
    const reason = (error as Error).message
    throw new Fault('CORRUPT', `the ${packing.name} data ends early or is corrupt: ${reason}`, {
      cause: error,
    })
  }
}

/** Copies chunks: a stream reads ahead, which would overwrite the chunk. */
async function* copies(head: Buffer, chunks: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield head
  for await (const chunk of chunks) yield Buffer.from(chunk)
}

interface Packing {
  readonly name: string
  readonly magic: Buffer
  create(): NodeJS.ReadWriteStream
}

/** Large enough to make system calls negligible, small enough to stay in the CPU cache. */
const CHUNK_BYTES = 1024 * 1024
const PACKINGS: readonly Packing[] = [
  { name: 'gzip', magic: Buffer.of(0x1f, 0x8b), create: () => createGunzip({ chunkSize: CHUNK_BYTES }) },
  {
    name: 'zstd',
    magic: Buffer.of(0x28, 0xb5, 0x2f, 0xfd),
    create: () => createZstdDecompress({ chunkSize: CHUNK_BYTES }),
  },
]
const MAGIC_BYTES = 4
const POLL_MS = 100
const LAST_WORDS_MS = 1000
