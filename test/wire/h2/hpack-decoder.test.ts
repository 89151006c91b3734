import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { HPACK_LIMITS, HpackDecoder } from '../../../src/wire/h2/hpack-decoder.ts'

type Field = readonly [name: string, value: string]

interface Example {
  readonly section: string
  /** Header blocks of one connection, each with the list it stands for. */
  readonly blocks: readonly (readonly [hex: string, list: readonly Field[]])[]
  /** The dynamic table in the end, newest first. */
  readonly table: readonly Field[]
}

const request1: readonly Field[] = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':path', '/'],
  [':authority', 'www.example.com'],
]
const request2: readonly Field[] = [...request1, ['cache-control', 'no-cache']]
const request3: readonly Field[] = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':path', '/index.html'],
  [':authority', 'www.example.com'],
  ['custom-key', 'custom-value'],
]
const requestTable: readonly Field[] = [
  ['custom-key', 'custom-value'],
  ['cache-control', 'no-cache'],
  [':authority', 'www.example.com'],
]

const response1: readonly Field[] = [
  [':status', '302'],
  ['cache-control', 'private'],
  ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
  ['location', 'https://www.example.com'],
]
const response2: readonly Field[] = [[':status', '307'], ...response1.slice(1)]
const response3: readonly Field[] = [
  [':status', '200'],
  ['cache-control', 'private'],
  ['date', 'Mon, 21 Oct 2013 20:13:22 GMT'],
  ['location', 'https://www.example.com'],
  ['content-encoding', 'gzip'],
  ['set-cookie', 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1'],
]
const responseTable: readonly Field[] = [response3[5]!, response3[4]!, response3[2]!]

/** The examples of C.5 and C.6 have a table of 256 bytes by SETTINGS: said here as an encoder has to say it. */
const TABLE_OF_256 = ['3fe101', []] as const

// RFC 7541, Appendix C.
const examples: readonly Example[] = [
  {
    section: 'C.2.1',
    blocks: [['400a637573746f6d2d6b65790d637573746f6d2d686561646572', [['custom-key', 'custom-header']]]],
    table: [['custom-key', 'custom-header']],
  },
  { section: 'C.2.2', blocks: [['040c2f73616d706c652f70617468', [[':path', '/sample/path']]]], table: [] },
  { section: 'C.2.3', blocks: [['100870617373776f726406736563726574', [['password', 'secret']]]], table: [] },
  { section: 'C.2.4', blocks: [['82', [[':method', 'GET']]]], table: [] },
  {
    section: 'C.3',
    blocks: [
      ['828684410f7777772e6578616d706c652e636f6d', request1],
      ['828684be58086e6f2d6361636865', request2],
      ['828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565', request3],
    ],
    table: requestTable,
  },
  {
    section: 'C.4',
    blocks: [
      ['828684418cf1e3c2e5f23a6ba0ab90f4ff', request1],
      ['828684be5886a8eb10649cbf', request2],
      ['828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf', request3],
    ],
    table: requestTable,
  },
  {
    section: 'C.5',
    blocks: [
      TABLE_OF_256,
      [
        `4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768
         747470733a2f2f7777772e6578616d706c652e636f6d`,
        response1,
      ],
      ['4803333037c1c0bf', response2],
      [
        `88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153
         444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e
         3d31`,
        response3,
      ],
    ],
    table: responseTable,
  },
  {
    section: 'C.6',
    blocks: [
      TABLE_OF_256,
      [
        `488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8
         e9ae82ae43d3`,
        response1,
      ],
      ['4883640effc1c0bf', response2],
      [
        `88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b
         3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007`,
        response3,
      ],
    ],
    table: responseTable,
  },
]

for (const { section, blocks, table } of examples) {
  test(`hpack: RFC 7541 ${section}`, async () => {
    const decoder = new HpackDecoder()
    for (const [block, list] of blocks) assert.deepEqual(decode(decoder, hex(block)), list.flat())
    assert.deepEqual(tableAfter(blocks.map(([block]) => hex(block))), table)
  })
}

test('hpack: a block cut short is an error or a shorter list', async () => {
  const block = hex(examples.at(-1)!.blocks.at(1)![0])
  const whole = decode(new HpackDecoder(), block)!
  for (let end = 0; end < block.length; end++) {
    const list = decode(new HpackDecoder(), block.subarray(0, end))
    assert.ok(list === null || list.length < whole.length, `cut at ${end}`)
    if (list !== null) assert.deepEqual(list, whole.slice(0, list.length), `cut at ${end}`)
  }
})

test('hpack: compression errors, each for good', async () => {
  const errors: Readonly<Record<string, string>> = {
    'index 0': '80',
    'an index past both tables': 'be',
    'a name past both tables': '7f0001 61',
    'an index no one can have': 'ff80808080 01',
    'a number without end': `ff${'80'.repeat(100)}`,
    'a size past the limit': '3fe2ff03',
    'a size update after a field': '8220',
    'a string longer than the block': '00 01 61 02 62',
    'a string of endless length': '007fffffffffffff0f',
    'a name without value': '000161',
    'padding of zeros': '00 81 18 00',
    'padding of eight bits': '00 82 1fff 00',
    'a whole byte of padding': '00 81 ff 00',
    'the end-of-string symbol': '00 84 ffffffff 00',
    'the end-of-string symbol, then more': '00 85 fffffffc 1f 00',
  }
  for (const [name, block] of Object.entries(errors)) {
    const decoder = new HpackDecoder()
    assert.equal(decode(decoder, hex(block)), null, name)
    assert.equal(decode(decoder, hex('82')), null, name)
  }
})

test('hpack: accepts input that only looks invalid', async () => {
  const lists: readonly [string, readonly string[]][] = [
    ['', []],
    ['20 3fe1ff03 82', [':method', 'GET']], // two size updates, the last to the limit
    ['0f8000 00', ['accept-charset', '']], // 15, written longer than need be
    ['00 81 1f 80', ['a', '']], // an empty string, Huffman-coded
    ['00 00 00', ['', '']],
  ]
  for (const [block, list] of lists) assert.deepEqual(decode(new HpackDecoder(), hex(block)), list, block)
  assert.equal(HPACK_LIMITS.tableBytesMax, 65_536)
})

test('hpack: evictions', async () => {
  const added = [literal('a', '1'), literal('b', '2'), literal('c', '3')] // 34 bytes each
  const tables: readonly [string, readonly Buffer[], readonly string[]][] = [
    ['none', added, ['c', 'b', 'a']],
    ['a table just large enough', [resized(102), ...added], ['c', 'b', 'a']],
    ['a table one byte too small', [resized(101), ...added], ['c', 'b']],
    ['a size update evicts at once', [...added, resized(67)], ['c']],
    ['and what it evicted does not come back', [...added, resized(33), resized(4096)], []],
    ['a field larger than the table empties it', [resized(102), ...added, literal('d', 'x'.repeat(70))], []],
    ['a field just as large is all of it', [resized(102), ...added, literal('d', 'x'.repeat(69))], ['d']],
  ]
  for (const [name, blocks, names] of tables) {
    assert.deepEqual(
      tableAfter(blocks).map(([each]) => each),
      names,
      name,
    )
  }
  // §4.4: the name may be the evicted field's own.
  const renamed = [resized(34), literal('a', '1'), Buffer.from([0x7e, 1, 0x32])]
  assert.deepEqual(tableAfter(renamed), [['a', '2']])
})

test('hpack: lists have limits', async () => {
  const value = 'x'.repeat(4096 - 33)
  const add = literal('a', value)
  const fits = HPACK_LIMITS.listBytesMax / 4096 - 1
  assert.equal(
    decode(new HpackDecoder(), Buffer.concat([add, Buffer.alloc(fits, 0xbe)]))?.length,
    2 * (fits + 1),
  )
  assert.equal(decode(new HpackDecoder(), Buffer.concat([add, Buffer.alloc(fits + 1, 0xbe)])), null)
  assert.equal(
    decode(new HpackDecoder(), Buffer.alloc(HPACK_LIMITS.fieldsMax, 0x82))?.length,
    2 * HPACK_LIMITS.fieldsMax,
  )
  assert.equal(decode(new HpackDecoder(), Buffer.alloc(HPACK_LIMITS.fieldsMax + 1, 0x82)), null)
})

test('hpack: every symbol of Appendix B', async () => {
  assert.equal(CODES.length, 257)
  for (let symbol = 0; symbol < 256; symbol++) {
    const text = String.fromCharCode(symbol)
    assert.deepEqual(decode(new HpackDecoder(), huffmanLiteral(text)), ['', text])
    assert.deepEqual(decode(new HpackDecoder(), huffmanLiteral(`${text}a${text}`)), ['', `${text}a${text}`])
  }
})

test('hpack: any Huffman-coded string', async () => {
  const property = fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
    const text = Buffer.from(bytes).toString('latin1')
    assert.deepEqual(decode(new HpackDecoder(), huffmanLiteral(text)), ['', text])
  })
  fc.assert(property, TIME_BOX)
})

test('hpack: any blocks of a correct encoder', async () => {
  const text = fc.string({ unit: 'grapheme-ascii', maxLength: 40 })
  const step = fc.record({
    kind: fc.constantFrom('index', 'name', 'new', 'plain', 'size'),
    name: text,
    value: text,
    pick: fc.nat(),
  })
  const property = fc.property(fc.array(fc.array(step, { maxLength: 12 }), { maxLength: 6 }), (blocks) => {
    const decoder = new HpackDecoder()
    const encoder = new ModelEncoder()
    for (const steps of blocks) {
      const { block, list } = encoder.encode(steps)
      assert.deepEqual(decode(decoder, block), list)
    }
  })
  fc.assert(property, TIME_BOX)
})

test('hpack: any bytes are a list or an error, never a throw', async () => {
  const mutated = fc
    .tuple(fc.constantFrom(...examples), fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 }))
    .map(([{ blocks }, changes]) => {
      const block = hex(blocks.at(-1)![0])
      for (const [at, byte] of changes) block[at % block.length] = byte
      return block
    })
  const anything = fc.oneof(mutated, fc.uint8Array({ maxLength: 100 }))
  const property = fc.property(fc.array(anything, { maxLength: 5 }), (blocks) => {
    const decoder = new HpackDecoder()
    let failed = false
    for (const block of blocks) {
      const list = decode(decoder, block)
      assert.ok(list === null || (!failed && list.length % 2 === 0))
      failed = list === null
    }
  })
  fc.assert(property, TIME_BOX)
})

interface Step {
  readonly kind: string
  readonly name: string
  readonly value: string
  readonly pick: number
}

/** RFC 7541 in the plainest words: what its decoder must make of it is what it was asked to encode. */
class ModelEncoder {
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

/** The dynamic table, newest first, asked of a new decoder index by index. */
function tableAfter(blocks: readonly Buffer[]): Field[] {
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
function decode(decoder: HpackDecoder, block: Uint8Array): string[] | null {
  const list: string[] = []
  return decoder.decode(block, list) === 'whole' ? list : null
}

function literal(name: string, value: string): Buffer {
  return Buffer.concat([integer(0x40, 6, 0), string(name), string(value)])
}

function resized(bytes: number): Buffer {
  return integer(0x20, 5, bytes)
}

function string(text: string): Buffer {
  return Buffer.concat([integer(0x00, 7, text.length), Buffer.from(text, 'latin1')])
}

/** A field without a name, its value Huffman-coded. */
function huffmanLiteral(value: string): Buffer {
  let bits = ''
  for (const character of value) bits += CODES[character.charCodeAt(0)]!
  while (bits.length % 8 !== 0) bits += '1'
  const bytes = (bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2))
  return Buffer.concat([Buffer.from([0x00, 0x00]), integer(0x80, 7, bytes.length), Buffer.from(bytes)])
}

function integer(kind: number, prefixBits: number, value: number): Buffer {
  const prefixMax = 2 ** prefixBits - 1
  if (value < prefixMax) return Buffer.from([kind | value])
  const bytes = [kind | prefixMax]
  for (value -= prefixMax; value > 0x7f; value >>= 7) bytes.push(0x80 | (value & 0x7f))
  return Buffer.from([...bytes, value])
}

function hex(text: string): Buffer {
  return Buffer.from(text.replace(/\s/g, ''), 'hex')
}

const TIME_BOX = { numRuns: 20_000, interruptAfterTimeLimit: 1500, markInterruptAsFailure: false }

/** RFC 7541, Appendix B: code as hex, aligned to LSB / its length in bits; the last is EOS. As bits. */
const CODES = `
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
