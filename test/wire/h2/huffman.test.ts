import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { huffmanTextMax, readHuffman, writeHuffman } from '../../../src/wire/h2/huffman.ts'
import { CODES, huffmanLiteral, ModelDecoder, toHuffman } from './hpack-model.ts'
import { timeBox } from '../../time-box.ts'

test('huffman: every symbol of Appendix B, in both directions and beside others', async () => {
  assert.equal(CODES.length, 257)
  for (let symbol = 0; symbol < 256; symbol++) {
    const text = String.fromCharCode(symbol)
    for (const each of [text, `${text}a${text}`, `a${text}`, `aa${text}~${text}`, text.repeat(9)]) {
      assert.deepEqual(written(each), toHuffman(each))
      assert.equal(read(toHuffman(each)), each)
    }
  }
})

test('huffman: one byte and two bytes of any value are what the model makes of them', async () => {
  for (let value = 0; value < 65_536; value++) {
    const two = Buffer.of(value >> 8, value & 0xff)
    assert.equal(read(two), modelled(two), `${value}`)
    if (value < 256) assert.equal(read(two.subarray(1)), modelled(two.subarray(1)), `${value}`)
  }
})

test('huffman: a code cut at any byte or with any bit changed is what the model makes of it', async () => {
  const code = toHuffman('/a?{"b":"~\x00\xff"}, GMT \\')
  for (let end = 0; end <= code.length; end++)
    assert.equal(read(code.subarray(0, end)), modelled(code.subarray(0, end)))
  for (let bit = 0; bit < 8 * code.length; bit++) {
    const changed = Buffer.from(code)
    changed[bit >> 3]! ^= 0x80 >> (bit & 7)
    assert.equal(read(changed), modelled(changed), `bit ${bit}`)
  }
})

test('huffman: any text in both directions, any bytes as the model', async () => {
  const property = fc.property(fc.uint8Array({ maxLength: 60 }), fc.boolean(), (bytes, isOnes) => {
    const text = Buffer.from(bytes).toString('latin1')
    assert.deepEqual(written(text), toHuffman(text))
    assert.equal(read(toHuffman(text)), text)
    const code = isOnes ? bytes.map((byte) => byte | 0xf0) : bytes
    assert.equal(read(code), modelled(code))
  })
  fc.assert(property, timeBox(20_000, 1_500))
})

test('huffman: what does not fit is counted, and nothing else is overwritten', async () => {
  const out = Buffer.alloc(8)
  assert.equal(
    writeHuffman('\x00\x01\x02\x03', out.subarray(0, 4), 1),
    1 + toHuffman('\x00\x01\x02\x03').length,
  )
  assert.deepEqual(out.subarray(4), Buffer.alloc(4))
})

function written(text: string): Buffer {
  const out = Buffer.alloc(1 + 4 * text.length + 1, 0xaa)
  const end = writeHuffman(text, out, 1)
  assert.deepEqual([out[0], ...new Set(out.subarray(end))], [0xaa, 0xaa])
  return out.subarray(1, end)
}

/** Null if the code is invalid. The code lies between other bytes, and the text has only the room it may need. */
function read(code: Uint8Array): string | null {
  const bytes = Buffer.concat([Buffer.of(0), code, Buffer.of(0)])
  const out = Buffer.alloc(huffmanTextMax(code.length))
  const length = readHuffman(bytes, 1, 1 + code.length, out)
  return length < 0 ? null : out.toString('latin1', 0, length)
}

function modelled(code: Uint8Array): string | null {
  const literal = Buffer.concat([huffmanLiteral('').subarray(0, 2), Buffer.of(0x80 | code.length), code])
  return new ModelDecoder().decode(literal)?.[1] ?? null
}
