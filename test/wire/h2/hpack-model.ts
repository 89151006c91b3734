import assert from 'node:assert/strict'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { HpackDecoder } from '../../../src/wire/h2/hpack-decoder.ts'
import { STATIC_NAMES, STATIC_VALUES } from '../../../src/wire/h2/static-table.ts'

export type Field = readonly [name: string, value: string]

export interface Step {
  readonly kind: string
  readonly name: string
  readonly value: string
  readonly pick: number
}

/** RFC 7541 in the plainest code: what its decoder must make of it is what it was asked to encode. */
export class ModelEncoder {
  #table: Field[] = []
  #bytesMax = 4096

  encode(steps: readonly Step[]): { block: Buffer; list: string[] } {
    const parts: Buffer[] = []
    const list: string[] = []
    for (const step of steps) {
      const picked = step.pick % Math.max(1, this.#table.length)
      const known = this.#table[picked]
      if (step.kind === 'size') {
        if (list.length > 0) continue
        this.#bytesMax = step.pick % 200
        this.#evict()
        parts.push(resized(this.#bytesMax))
        continue
      }
      if (step.kind === 'index' && known) {
        parts.push(integer(0x80, 7, 62 + picked))
        list.push(...known)
        continue
      }
      const name = step.kind === 'name' && known ? known[0] : step.name
      if (step.kind === 'plain') parts.push(integer(0x00, 4, 0), string(name), string(step.value))
      else if (step.kind === 'name' && known) parts.push(integer(0x40, 6, 62 + picked), string(step.value))
      else parts.push(literal(name, step.value))
      list.push(name, step.value)
      if (step.kind === 'plain') continue
      this.#table.unshift([name, step.value])
      this.#evict()
    }
    return { block: Buffer.concat(parts), list }
  }

  #evict(): void {
    const bytes = () => this.#table.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0)
    while (bytes() > this.#bytesMax) this.#table.pop()
  }
}

/** RFC 7541 in the plainest code, to decode any bytes with. */
export class ModelDecoder {
  #table: Field[] = []
  #bytesMax = 4096
  #bytes: number[] = []
  readonly #tableBytesMax: number

  constructor(tableBytesMax = 65_536) {
    this.#tableBytesMax = tableBytesMax
  }

  /** The list, or null on a compression error. */
  decode(block: Uint8Array): string[] | null {
    this.#bytes = [...block]
    const list: string[] = []
    try {
      while (this.#bytes.length > 0) list.push(...this.#field(list.length === 0))
      return list
    } catch (error) {
      assert.ok(error instanceof RangeError)
      return null
    }
  }

  #field(isFirst: boolean): readonly string[] {
    const bits = this.#bytes[0]!.toString(2).padStart(8, '0')
    if (bits.startsWith('1')) return this.#at(this.#integer(7))
    if (bits.startsWith('001')) {
      this.#bytesMax = this.#integer(5)
      if (!isFirst || this.#bytesMax > this.#tableBytesMax) throw new RangeError('size update')
      this.#evict()
      return []
    }
    const isIndexing = bits.startsWith('01')
    const index = this.#integer(isIndexing ? 6 : 4)
    const field: Field = [index === 0 ? this.#string() : this.#at(index)[0], this.#string()]
    if (isIndexing) this.#table.unshift(field)
    this.#evict()
    return field
  }

  #at(index: number): Field {
    if (index > 0 && index <= 61) return [STATIC_NAMES[index]!, STATIC_VALUES[index]!]
    const field = index === 0 ? undefined : this.#table[index - 62]
    if (field === undefined) throw new RangeError('index')
    return field
  }

  #string(): string {
    const isHuffman = this.#byte(this.#bytes[0]) >= 0x80
    const length = this.#integer(7)
    if (length > this.#bytes.length) throw new RangeError('string')
    const bytes = this.#bytes.splice(0, length)
    return isHuffman ? fromHuffman(bytes) : String.fromCharCode(...bytes)
  }

  #integer(prefixBits: number): number {
    const prefixMax = 2 ** prefixBits - 1
    let value = this.#byte(this.#bytes.shift()) % (prefixMax + 1)
    if (value < prefixMax) return value
    for (let power = 0; power < 4; power++) {
      const byte = this.#byte(this.#bytes.shift())
      value += (byte % 128) * 128 ** power
      if (byte < 128) return value
    }
    throw new RangeError('integer')
  }

  #byte(byte: number | undefined): number {
    if (byte === undefined) throw new RangeError('end')
    return byte
  }

  #evict(): void {
    const bytes = () => this.#table.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0)
    while (bytes() > this.#bytesMax) this.#table.pop()
  }
}

function fromHuffman(bytes: readonly number[]): string {
  const bits = bytes.map((byte) => byte.toString(2).padStart(8, '0')).join('')
  let text = ''
  let at = 0
  for (let end = 5; end <= bits.length; end++) {
    const symbol = SYMBOLS.get(bits.slice(at, end))
    if (symbol === undefined) continue
    if (symbol === 256) throw new RangeError('end of string')
    text += String.fromCharCode(symbol)
    at = end
  }
  if (!/^1{0,7}$/.test(bits.slice(at))) throw new RangeError('padding')
  return text
}

/** The dynamic table, newest first, asked of a new decoder index by index. */
export function tableAfter(blocks: readonly Buffer[]): Field[] {
  const table: Field[] = []
  while (true) {
    const decoder = new HpackDecoder()
    for (const block of blocks) assert.ok(decode(decoder, block) !== null)
    const field = decode(decoder, integer(0x80, 7, 62 + table.length))
    if (field === null) return table
    table.push([field[0]!, field[1]!])
  }
}

/** The list, or null if the block is malformed or the list is too large. */
export function decode(decoder: HpackDecoder, block: Uint8Array): string[] | null {
  const list: string[] = []
  return decoder.decode(block, list) === 'whole' ? list : null
}

export function garbageCollector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc')
}

export function literal(name: string, value: string): Buffer {
  return Buffer.concat([integer(0x40, 6, 0), string(name), string(value)])
}

export function resized(bytes: number): Buffer {
  return integer(0x20, 5, bytes)
}

export function string(text: string): Buffer {
  return Buffer.concat([integer(0x00, 7, text.length), Buffer.from(text, 'latin1')])
}

export function toHuffman(text: string): Buffer {
  let bits = ''
  for (const character of text) bits += CODES[character.charCodeAt(0)]!
  while (bits.length % 8 !== 0) bits += '1'
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
}

/** A field without a name, its value Huffman-coded. */
export function huffmanLiteral(value: string): Buffer {
  const bytes = toHuffman(value)
  return Buffer.concat([Buffer.from([0x00, 0x00]), integer(0x80, 7, bytes.length), bytes])
}

export function integer(kind: number, prefixBits: number, value: number): Buffer {
  const prefixMax = 2 ** prefixBits - 1
  if (value < prefixMax) return Buffer.from([kind | value])
  const bytes = [kind | prefixMax]
  for (value -= prefixMax; value > 0x7f; value >>= 7) bytes.push(0x80 | (value & 0x7f))
  return Buffer.from([...bytes, value])
}

export function hex(text: string): Buffer {
  return Buffer.from(text.replace(/\s/g, ''), 'hex')
}

/** RFC 7541, Appendix B: code as hex, aligned to LSB / its length in bits; the last is EOS. As bits. */
export const CODES = `
  1ff8/13 7fffd8/23 fffffe2/28 fffffe3/28 fffffe4/28 fffffe5/28 fffffe6/28 fffffe7/28 fffffe8/28 ffffea/24
  3ffffffc/30 fffffe9/28 fffffea/28 3ffffffd/30 fffffeb/28 fffffec/28 fffffed/28 fffffee/28 fffffef/28
  ffffff0/28 ffffff1/28 ffffff2/28 3ffffffe/30 ffffff3/28 ffffff4/28 ffffff5/28 ffffff6/28 ffffff7/28
  ffffff8/28 ffffff9/28 ffffffa/28 ffffffb/28 14/6 3f8/10 3f9/10 ffa/12 1ff9/13 15/6 f8/8 7fa/11 3fa/10
  3fb/10 f9/8 7fb/11 fa/8 16/6 17/6 18/6 0/5 1/5 2/5 19/6 1a/6 1b/6 1c/6 1d/6 1e/6 1f/6 5c/7 fb/8 7ffc/15
  20/6 ffb/12 3fc/10 1ffa/13 21/6 5d/7 5e/7 5f/7 60/7 61/7 62/7 63/7 64/7 65/7 66/7 67/7 68/7 69/7 6a/7 6b/7
  6c/7 6d/7 6e/7 6f/7 70/7 71/7 72/7 fc/8 73/7 fd/8 1ffb/13 7fff0/19 1ffc/13 3ffc/14 22/6 7ffd/15 3/5 23/6
  4/5 24/6 5/5 25/6 26/6 27/6 6/5 74/7 75/7 28/6 29/6 2a/6 7/5 2b/6 76/7 2c/6 8/5 9/5 2d/6 77/7 78/7 79/7
  7a/7 7b/7 7ffe/15 7fc/11 3ffd/14 1ffd/13 ffffffc/28 fffe6/20 3fffd2/22 fffe7/20 fffe8/20 3fffd3/22
  3fffd4/22 3fffd5/22 7fffd9/23 3fffd6/22 7fffda/23 7fffdb/23 7fffdc/23 7fffdd/23 7fffde/23 ffffeb/24
  7fffdf/23 ffffec/24 ffffed/24 3fffd7/22 7fffe0/23 ffffee/24 7fffe1/23 7fffe2/23 7fffe3/23 7fffe4/23
  1fffdc/21 3fffd8/22 7fffe5/23 3fffd9/22 7fffe6/23 7fffe7/23 ffffef/24 3fffda/22 1fffdd/21 fffe9/20
  3fffdb/22 3fffdc/22 7fffe8/23 7fffe9/23 1fffde/21 7fffea/23 3fffdd/22 3fffde/22 fffff0/24 1fffdf/21
  3fffdf/22 7fffeb/23 7fffec/23 1fffe0/21 1fffe1/21 3fffe0/22 1fffe2/21 7fffed/23 3fffe1/22 7fffee/23
  7fffef/23 fffea/20 3fffe2/22 3fffe3/22 3fffe4/22 7ffff0/23 3fffe5/22 3fffe6/22 7ffff1/23 3ffffe0/26
  3ffffe1/26 fffeb/20 7fff1/19 3fffe7/22 7ffff2/23 3fffe8/22 1ffffec/25 3ffffe2/26 3ffffe3/26 3ffffe4/26
  7ffffde/27 7ffffdf/27 3ffffe5/26 fffff1/24 1ffffed/25 7fff2/19 1fffe3/21 3ffffe6/26 7ffffe0/27 7ffffe1/27
  3ffffe7/26 7ffffe2/27 fffff2/24 1fffe4/21 1fffe5/21 3ffffe8/26 3ffffe9/26 ffffffd/28 7ffffe3/27 7ffffe4/27
  7ffffe5/27 fffec/20 fffff3/24 fffed/20 1fffe6/21 3fffe9/22 1fffe7/21 1fffe8/21 7ffff3/23 3fffea/22
  3fffeb/22 1ffffee/25 1ffffef/25 fffff4/24 fffff5/24 3ffffea/26 7ffff4/23 3ffffeb/26 7ffffe6/27 3ffffec/26
  3ffffed/26 7ffffe7/27 7ffffe8/27 7ffffe9/27 7ffffea/27 7ffffeb/27 ffffffe/28 7ffffec/27 7ffffed/27
  7ffffee/27 7ffffef/27 7fffff0/27 3ffffee/26 3fffffff/30
`
  .trim()
  .split(/\s+/)
  .map((entry) => {
    const [code, length] = entry.split('/')
    return Number.parseInt(code!, 16).toString(2).padStart(Number(length), '0')
  })

const SYMBOLS: ReadonlyMap<string, number> = new Map(CODES.map((code, symbol) => [code, symbol]))
