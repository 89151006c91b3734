import { closeSync, createReadStream, openSync, readSync } from 'node:fs'

/**
 * Reads a file that an operator named. It may be a pipe, whose size is unknown, or a device without an end. Throws
 * like `readFile`, and with the code EFBIG if there is more than `bytesMax`.
 */
export async function readBounded(file: string, bytesMax = FILE_BYTES_MAX): Promise<Buffer> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of createReadStream(file, { end: bytesMax }) as AsyncIterable<Buffer>) {
    pieces.push(piece)
    length += piece.length
  }
  if (length > bytesMax) throw tooLarge(file, bytesMax)
  return Buffer.concat(pieces, length)
}

export async function readBoundedText(file: string): Promise<string> {
  return (await readBounded(file)).toString('utf8')
}

export function readBoundedSync(file: string, bytesMax = FILE_BYTES_MAX): Buffer {
  const descriptor = openSync(file, 'r')
  try {
    const pieces: Buffer[] = []
    let length = 0
    for (;;) {
      const piece = Buffer.allocUnsafe(PIECE_BYTES)
      const read = readSync(descriptor, piece)
      if (read === 0) return Buffer.concat(pieces, length)
      pieces.push(piece.subarray(0, read))
      length += read
      if (length > bytesMax) throw tooLarge(file, bytesMax)
    }
  } finally {
    closeSync(descriptor)
  }
}

function tooLarge(file: string, bytesMax: number): NodeJS.ErrnoException {
  const error: NodeJS.ErrnoException = new Error(`${file} is larger than ${bytesMax} bytes`)
  error.code = 'EFBIG'
  return error
}

/** Larger than any settings, policy, key or certificate file. */
const FILE_BYTES_MAX = 16 * 1_048_576
const PIECE_BYTES = 65_536
