import { promisify } from 'node:util'
import { constants, zstdCompress, zstdDecompress } from 'node:zlib'
import { Fault } from '../shared/fault.ts'
import type { Reported } from './counts/request-counts.ts'

/**
 * Packs the batch, in order, into messages of at most `bytesMax`. Drops an item that does not fit into a message
 * alone.
 */
export async function packSightings(
  batch: readonly Reported[],
  bytesMax: number,
): Promise<readonly Packed[]> {
  if (batch.length === 0) return []
  const bytes = await compress(Buffer.from(JSON.stringify(batch)), FAST)
  if (bytes.length <= bytesMax) return [{ items: batch, bytes }]
  if (batch.length === 1) return []
  const half = batch.length >>> 1
  return [
    ...(await packSightings(batch.slice(0, half), bytesMax)),
    ...(await packSightings(batch.slice(half), bytesMax)),
  ]
}

export interface Packed {
  readonly items: readonly Reported[]
  readonly bytes: Buffer
}

/** Unpacks untrusted data: the caller must validate each item. Throws a Fault if it is not a batch. */
export async function unpackSightings(bytes: Uint8Array): Promise<readonly unknown[]> {
  try {
    const text = await decompress(Buffer.from(bytes), { maxOutputLength: BATCH_BYTES_MAX })
    const value: unknown = JSON.parse(text.toString('utf8'))
    if (Array.isArray(value)) return value
  } catch (error) {
    throw new Fault('SIGHTINGS_INVALID', 'a batch of Sightings cannot be read', { cause: error })
  }
  throw new Fault('SIGHTINGS_INVALID', 'a batch of Sightings is not a list')
}

const compress = promisify(zstdCompress)
const decompress = promisify(zstdDecompress)
const FAST = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }
/** More than 512 Sightings, each with the longest head that a proxy accepts. */
const BATCH_BYTES_MAX = 256 * 1024 ** 2
