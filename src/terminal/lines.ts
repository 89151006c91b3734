export interface Line {
  /** Without the line end; `null`: longer than allowed. */
  readonly text: string | null
}

/** The lines of a stream, in the batches in which they arrive. The last line needs no line end. */
export async function* lines(
  stream: AsyncIterable<Uint8Array>,
  bytesMax: number,
): AsyncGenerator<readonly Line[]> {
  let held: Buffer[] = []
  let heldBytes = 0
  const finish = (piece: Buffer): Line => {
    const tooLong = heldBytes + piece.length > bytesMax
    const text = tooLong ? null : Buffer.concat([...held, piece]).toString('utf8')
    held = []
    heldBytes = 0
    return { text }
  }
  for await (const chunk of stream) {
    const bytes = Buffer.from(chunk)
    const batch: Line[] = []
    let from = 0
    for (let to = bytes.indexOf(LF); to !== -1; to = bytes.indexOf(LF, from)) {
      batch.push(finish(bytes.subarray(from, to)))
      from = to + 1
    }
    const rest = bytes.subarray(from)
    heldBytes += rest.length
    if (heldBytes <= bytesMax) held.push(rest)
    else held = []
    if (batch.length > 0) yield batch
  }
  if (heldBytes > 0) yield [finish(EMPTY)]
}

const LF = 0x0a
const EMPTY = Buffer.alloc(0)
