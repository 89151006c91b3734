/** A buffer of at least this many bytes, which may hold anything. */
export function borrow(bytes: number): Buffer {
  const kind = KINDS.find(({ size }) => bytes <= size)
  return kind === undefined
    ? Buffer.allocUnsafeSlow(bytes)
    : (kind.free.pop() ?? Buffer.allocUnsafeSlow(kind.size))
}

/** Nothing may refer to the buffer any more. */
export function giveBack(buffer: Buffer): void {
  const kind = KINDS.find(({ size }) => buffer.length === size)
  if (kind !== undefined && kind.free.length < kind.freeMax) kind.free.push(buffer)
}

interface Kind {
  readonly size: number
  readonly free: Buffer[]
  readonly freeMax: number
}

/** For small answers, for a full write, and for what an app connection delivers at once. */
const KINDS: readonly Kind[] = [
  { size: 4_096, free: [], freeMax: 64 },
  { size: 81_920, free: [], freeMax: 8 },
  { size: 300_000, free: [], freeMax: 4 },
]
