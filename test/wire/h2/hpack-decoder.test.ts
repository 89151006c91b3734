import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import {
  decode,
  garbageCollector,
  hex,
  literal,
  ModelDecoder,
  ModelEncoder,
  resized,
  tableAfter,
} from './hpack-model.ts'
import { EXAMPLES } from './rfc7541.ts'
import { HPACK_LIMITS, HpackDecoder } from '../../../src/wire/h2/hpack-decoder.ts'
import { timeBox } from '../../time-box.ts'

for (const { section, blocks, table } of EXAMPLES) {
  test(`hpack: RFC 7541 ${section}`, async () => {
    const decoder = new HpackDecoder()
    for (const [block, list] of blocks) assert.deepEqual(decode(decoder, hex(block)), list.flat())
    assert.deepEqual(tableAfter(blocks.map(([block]) => hex(block))), table)
  })
}

test('hpack: fields that are never indexed are named, each block anew', async () => {
  const decoder = new HpackDecoder()
  const blocks = ['1008 70617373776f7264 06 736563726574', '82', '1f11 01 61 1f12 01 62', '0f11 01 61']
  const named = blocks.map((block) => {
    decode(decoder, hex(block))
    return decoder.neverIndexed
  })
  assert.deepEqual(named, [['password'], null, ['cookie', 'date'], null])
})

test('hpack: a block cut at any byte is an error or a shorter list, as the model has it', async () => {
  for (const { blocks } of EXAMPLES) {
    for (const [at, [last]] of blocks.entries()) {
      for (let end = 0; end < hex(last).length; end++) {
        const cut = [...blocks.slice(0, at).map(([block]) => hex(block)), hex(last).subarray(0, end)]
        const decoder = new HpackDecoder()
        const model = new ModelDecoder()
        for (const block of cut)
          assert.deepEqual(decode(decoder, block), model.decode(block), `cut at ${end}`)
      }
    }
  }
})

test('hpack: compression errors, each for good', async () => {
  const errors: Readonly<Record<string, string>> = {
    'index 0': '80',
    'an index past both tables': 'be',
    'a name past both tables': '7f0001 61',
    'a name just past both tables': '7e01 61',
    'a number of six bytes': '0f8080808000 00',
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
    ['0f80808000 00', ['accept-charset', '']], // and as long as may be
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

test('hpack: what was evicted is not kept in memory', async () => {
  const collect = garbageCollector()
  const block = Buffer.concat([resized(65_536), literal('a', 'x'.repeat(60_000))])
  collect()
  const before = process.memoryUsage().heapUsed
  const decoders = Array.from({ length: 300 }, () => new HpackDecoder())
  for (const decoder of decoders)
    for (const each of [block, resized(0)]) assert.ok(decode(decoder, each) !== null)
  collect()
  assert.ok(process.memoryUsage().heapUsed - before < 5_000_000)
  assert.equal(decoders.at(-1)?.heldBytes, 0)
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

test('hpack: a list over a limit is cut, and the table goes on', async () => {
  const limits = { tableBytesMax: 4096, listBytesMax: 150, fieldsMax: 3 }
  const added = [literal('a', '1'), literal('b', '2'), literal('c', '3'), literal('d', '4')]
  const large = literal('e', 'x'.repeat(120))
  const blocks: readonly [Buffer, string, readonly string[]][] = [
    [Buffer.concat(added), 'too-large', ['a', '1', 'b', '2', 'c', '3']],
    [Buffer.of(0xbe, 0xbf, 0xc0), 'whole', ['d', '4', 'c', '3', 'b', '2']],
    [Buffer.concat([large, literal('f', '5')]), 'too-large', []],
    [Buffer.of(0xbe), 'whole', ['f', '5']],
    [Buffer.of(0xbf), 'too-large', []],
    [Buffer.of(0xbf, 0xbe, 0xbe, 0xbe, 0xbe, 0x80), 'malformed', []],
    [Buffer.of(0xbe), 'malformed', []],
  ]
  const decoder = new HpackDecoder(limits)
  for (const [block, outcome, expected] of blocks) {
    const list: string[] = []
    assert.equal(decoder.decode(block, list), outcome)
    assert.deepEqual(list, expected)
  }
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

test('hpack: any bytes are what the model makes of them', async () => {
  const mutated = fc
    .tuple(fc.constantFrom(...EXAMPLES), fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 }))
    .map(([{ blocks }, changes]) => {
      const block = hex(blocks.at(-1)![0])
      for (const [at, byte] of changes) block[at % block.length] = byte
      return block
    })
  const anything = fc.oneof(mutated, fc.uint8Array({ maxLength: 100 }))
  const property = fc.property(fc.array(anything, { maxLength: 5 }), (blocks) => {
    const decoder = new HpackDecoder()
    const model = new ModelDecoder()
    for (const block of blocks) {
      const list = model.decode(block)
      assert.deepEqual(decode(decoder, block), list)
      if (list === null) return
    }
  })
  fc.assert(property, TIME_BOX)
})

const TIME_BOX = timeBox(20_000, 1_500)
