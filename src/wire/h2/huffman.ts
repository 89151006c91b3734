/** The Huffman code of HPACK (RFC 7541 §5.2 and Appendix B). One character is one byte. */

/**
 * Writes `text` at `at` and returns the position after it. Bytes past the end of `out` are lost, and the position
 * then says how many there are.
 */
export function writeHuffman(text: string, out: Uint8Array, at: number): number {
  let pending = 0
  let count = 0
  for (let i = 0; i < text.length; i++) {
    const symbol = text.charCodeAt(i) & 0xff
    const short = SHORT_CODES[symbol]!
    let bits = short & SHORT_BITS
    let code = short >>> SHORT_SHIFT
    if (short === 0) {
      // In two parts, so that at most 15 pending bits and a part fit in 32 bits.
      const high = CODE_BITS[symbol]! - SHORT_BITS_MAX
      pending = (pending << high) | (CODES[symbol]! >>> SHORT_BITS_MAX)
      count += high
      if (count >= 16) {
        count -= 16
        out[at++] = pending >>> (count + 8)
        out[at++] = pending >>> count
      }
      bits = SHORT_BITS_MAX
      code = CODES[symbol]! & SHORT_CODE_MASK
    }
    pending = (pending << bits) | code
    count += bits
    if (count >= 16) {
      count -= 16
      out[at++] = pending >>> (count + 8)
      out[at++] = pending >>> count
    }
  }
  if (count >= 8) {
    count -= 8
    out[at++] = pending >>> count
  }
  if (count > 0) out[at++] = (pending << (8 - count)) | (0xff >>> count)
  return at
}

/** The room that `readHuffman` needs for `bytes` bytes of code. */
export function huffmanTextMax(bytes: number): number {
  return Math.floor((bytes * 8) / SHORTEST_CODE_BITS)
}

/** Decodes bytes `at` to `end` into `out` and returns the length of the text, or -1 if the code is invalid. */
export function readHuffman(bytes: Uint8Array, at: number, end: number, out: Uint8Array): number {
  let length = 0
  let pending = 0
  let count = 0
  while (true) {
    if (count < STEP_BITS) {
      if (end - at >= 2) {
        pending = (pending << 16) | (bytes[at]! << 8) | bytes[at + 1]!
        count += 16
        at += 2
      } else if (at < end) {
        pending = (pending << 8) | bytes[at++]!
        count += 8
      }
      if (count < STEP_BITS) break
    }
    const step = STEPS[(pending >>> (count - STEP_BITS)) & STEP_MASK]!
    if (step !== 0) {
      out[length] = step
      out[length + 1] = step >>> 8
      length += (step >>> 16) & 3
      count -= step >>> 24
      continue
    }
    // A long code, bit by bit.
    let node = ROOT
    do {
      if (count === 0) {
        if (at === end) return -1
        pending = bytes[at++]!
        count = 8
      }
      count--
      node = TREE[2 * node + ((pending >>> count) & 1)]!
    } while (node > 0)
    if (~node === EOS) return -1
    out[length++] = ~node
  }
  while (count > 0) {
    const ones = STEP_MASK >>> count
    const step = STEPS[((pending << (STEP_BITS - count)) | ones) & STEP_MASK]!
    const bits = (step >>> 20) & 0xf
    if (step === 0 || bits > count) break
    out[length++] = step
    count -= bits
  }
  // §5.2: at most seven bits of padding, all ones.
  const padding = (1 << count) - 1
  return count < 8 && (pending & padding) === padding ? length : -1
}

/** The code as a binary tree. A node has two children; each is an inner node or the complement of a symbol. */
function codeTree(): Int16Array {
  const tree = new Int16Array(2 * INNER_NODES)
  let nodes = 1
  for (let symbol = 0; symbol <= EOS; symbol++) {
    const code = CODES[symbol]!
    let node = ROOT
    for (let bit = CODE_BITS[symbol]! - 1; bit > 0; bit--) {
      const child = 2 * node + ((code >>> bit) & 1)
      if (tree[child] === 0) tree[child] = nodes++
      node = tree[child]!
    }
    tree[2 * node + (code & 1)] = ~symbol
  }
  return tree
}

/** The code is canonical: codes of one length follow each other in the order of their symbols. */
function canonicalCodes(): Uint32Array {
  const codes = new Uint32Array(CODE_BITS.length)
  let code = 0
  for (let bits = SHORTEST_CODE_BITS; bits <= LONGEST_CODE_BITS; bits++, code *= 2)
    for (let symbol = 0; symbol <= EOS; symbol++) if (CODE_BITS[symbol] === bits) codes[symbol] = code++
  return codes
}

/** Of each symbol, 0 if its code is longer than SHORT_BITS_MAX. */
function shortCodes(): Uint32Array {
  return Uint32Array.from(CODES, (code, symbol) =>
    CODE_BITS[symbol]! <= SHORT_BITS_MAX ? (code << SHORT_SHIFT) | CODE_BITS[symbol]! : 0,
  )
}

/**
 * For each STEP_BITS bits: the first symbol in the low byte, a second in the next byte if it fits, TWO_SYMBOLS,
 * the bits of the first code (at bit 20) and of all (at bit 24). 0 if the first code is longer.
 */
function stepTable(): Uint32Array {
  const steps = new Uint32Array(1 << STEP_BITS)
  const short = [...CODE_BITS.keys()].filter((symbol) => CODE_BITS[symbol]! <= STEP_BITS)
  for (const first of short) {
    const firstBits = CODE_BITS[first]!
    const left = STEP_BITS - firstBits
    const from = CODES[first]! << left
    steps.fill(first | ONE_SYMBOL | (firstBits << 20) | (firstBits << 24), from, from + (1 << left))
    for (const second of short) {
      const rest = left - CODE_BITS[second]!
      if (rest < 0) continue
      const at = from + (CODES[second]! << rest)
      const bits = (firstBits << 20) | ((STEP_BITS - rest) << 24)
      steps.fill(first | (second << 8) | TWO_SYMBOLS | bits, at, at + (1 << rest))
    }
  }
  return steps
}

/** Appendix B: the code length of each symbol. */
// biome-ignore format: 16 to a row
const CODE_BITS: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
  30,
]
const EOS = 256
const SHORTEST_CODE_BITS = 5
const LONGEST_CODE_BITS = 30

/** A binary tree with 257 leaves has 256 inner nodes. */
const INNER_NODES = 256
const ROOT = 0

/** Two letters or digits, mostly. */
const STEP_BITS = 12
const STEP_MASK = (1 << STEP_BITS) - 1
const ONE_SYMBOL = 1 << 16
const TWO_SYMBOLS = 2 << 16

// A short code and, in the low five bits, its length.
const SHORT_BITS_MAX = 15
const SHORT_CODE_MASK = (1 << SHORT_BITS_MAX) - 1
const SHORT_SHIFT = 5
const SHORT_BITS = (1 << SHORT_SHIFT) - 1

const CODES = canonicalCodes()
const TREE = codeTree()
const STEPS = stepTable()
const SHORT_CODES = shortCodes()
