import { constants, zstdCompress, zstdDecompress } from 'node:zlib'
import { promisify } from 'node:util'
import { Fault } from '../shared/fault.ts'

/**
 * A delta that turns `from` into `to`. Each block of `to` is compressed with the bytes around the same place
 * in `from` as dictionary, so a small change gives a small delta.
 */
export async function makeDelta(from: Buffer, to: Buffer): Promise<Buffer> {
  const parts: Buffer[] = []
  for (let at = 0; at < to.length; at += BLOCK_BYTES) {
    const block = await compress(to.subarray(at, at + BLOCK_BYTES), {
      dictionary: around(from, at),
      params: { [constants.ZSTD_c_windowLog]: WINDOW_LOG },
    })
    const length = Buffer.alloc(LENGTH_BYTES)
    length.writeUInt32BE(block.length)
    parts.push(length, block)
  }
  return Buffer.concat(parts)
}

/** Applies a delta; the result has `bytes` bytes. Throws a Fault if the delta does not match. */
export async function applyDelta(from: Buffer, delta: Buffer, bytes: number): Promise<Buffer> {
  if (bytes > PACKAGE_BYTES_MAX) throw unfit('is too large')
  const to = Buffer.alloc(bytes)
  let readAt = 0
  for (let at = 0; at < bytes; at += BLOCK_BYTES) {
    if (readAt + LENGTH_BYTES > delta.length) throw unfit('ends too early')
    const end = readAt + LENGTH_BYTES + delta.readUInt32BE(readAt)
    if (end > delta.length) throw unfit('ends too early')
    const size = Math.min(BLOCK_BYTES, bytes - at)
    const block = await expanded(delta.subarray(readAt + LENGTH_BYTES, end), around(from, at), size)
    to.set(block, at)
    freeBytes(block)
    readAt = end
  }
  if (readAt !== delta.length) throw unfit('has more than it says')
  return to
}

/** Compresses the whole. */
export function shrink(whole: Buffer): Promise<Buffer> {
  return compress(whole)
}

/** Throws a Fault unless the result has `bytes` bytes. */
export async function grow(shrunk: Buffer, bytes: number): Promise<Buffer> {
  if (bytes > PACKAGE_BYTES_MAX) throw unfit('is too large')
  return expanded(shrunk, null, bytes)
}

/**
 * Gives the memory of large bytes back at once; they are empty then. V8 would wait until buffers have taken 64 MiB. Only for
 * bytes that nothing else refers to.
 */
export function freeBytes(bytes: Uint8Array): void {
  const { buffer } = bytes
  // Small buffers are parts of a pool.
  if (bytes.length > Buffer.poolSize && buffer instanceof ArrayBuffer) buffer.transfer(0)
}

async function expanded(block: Buffer, dictionary: Buffer | null, bytes: number): Promise<Buffer> {
  try {
    const found = await decompress(block, {
      maxOutputLength: Math.max(bytes, 1),
      // A block in one piece. With a byte that stays free, zlib makes no room for more.
      chunkSize: Math.max(CHUNK_BYTES_MIN, Math.min(bytes, BLOCK_BYTES) + 1),
      params: { [constants.ZSTD_d_windowLogMax]: WINDOW_LOG_MAX },
      ...(dictionary === null ? {} : { dictionary }),
    })
    if (found.length === bytes) return found
  } catch (error) {
    throw unfit('cannot be read', error)
  }
  throw unfit('has another length than it says')
}

function around(from: Buffer, at: number): Buffer {
  return from.subarray(Math.max(0, at - MARGIN_BYTES), at + BLOCK_BYTES + MARGIN_BYTES)
}

function unfit(what: string, cause?: unknown): Fault {
  return new Fault('SNAPSHOT_INVALID', `the change of a Snapshot ${what}`, { cause })
}

const compress = promisify(zstdCompress) as (
  bytes: Buffer,
  options?: Parameters<typeof zstdCompress>[1] & { readonly dictionary?: Buffer },
) => Promise<Buffer>
const decompress = promisify(zstdDecompress) as typeof compress

/** A million signatures take some 40 MB. */
const PACKAGE_BYTES_MAX = 1024 ** 3
/** With larger blocks or dictionaries, zstd no longer finds all matches. */
const BLOCK_BYTES = 256 * 1024
/** An insertion shifts all bytes behind it, so the dictionary extends beyond the block. */
const MARGIN_BYTES = BLOCK_BYTES / 2
/** Covers a block and its whole dictionary. */
const WINDOW_LOG = 20
/** For a whole package: zstd's default level needs a window of at most 8 MiB. */
const WINDOW_LOG_MAX = 23
const LENGTH_BYTES = 4
/** What Node allows. */
const CHUNK_BYTES_MIN = 64
