import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { HpackDecoder } from '../../src/wire/h2/hpack-decoder.ts'
import { blockFragment, countFields } from '../../src/wire/field-block.ts'
import { fieldBlock, getRequest } from '../proxy/http2-frames.ts'
import { timeBox } from '../time-box.ts'

/** Requests of RFC 7541, Appendix C. */
const BLOCKS: readonly (readonly [hex: string, count: number])[] = [
  ['', 0],
  ['828684410f7777772e6578616d706c652e636f6d', 4], // C.3.1
  ['828684be58086e6f2d6361636865', 5], // C.3.2
  ['828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565', 5], // C.3.3
  ['828684418cf1e3c2e5f23a6ba0ab90f4ff', 4], // C.4.1
  ['040c2f73616d706c652f70617468', 1], // C.2.2
  ['100870617373776f726406736563726574', 1], // C.2.3
  ['203fe11f82', 1], // two changes of the table's size
]

test('the fields of a block are counted, however they are written', async () => {
  for (const [hex, count] of BLOCKS) assert.equal(countFields(Buffer.from(hex, 'hex')), count, hex)
  const long = getRequest({}, 'x-long', 'v'.repeat(5000), 'n'.repeat(200), '')
  assert.equal(countFields(fieldBlock(long)), long.length / 2)
})

test('a block that breaks off anywhere but between fields has no count', async () => {
  const block = fieldBlock(getRequest())
  const ends = new Set<number>([0])
  for (let at = 0; at < block.length; ) {
    at += 1 + 1 + block[at + 1]!
    at += 1 + block[at]!
    ends.add(at)
  }
  for (let cut = 0; cut <= block.length; cut++)
    assert.equal(countFields(block.subarray(0, cut)) !== null, ends.has(cut), `${cut}`)
  for (const hex of ['7f', 'ff', '00ffffffffffffffff', '0001', '40ffffffffff7f0161'])
    assert.equal(countFields(Buffer.from(hex, 'hex')), null, hex)
})

test('whatever the decoder can read has as many fields as are counted', async () => {
  const property = fc.property(fc.uint8Array({ maxLength: 64 }), (block) => {
    const list: string[] = []
    if (new HpackDecoder().decode(block, list) === 'whole') assert.equal(countFields(block), list.length / 2)
  })
  fc.assert(property, timeBox(20_000, 10_000))
})

test('the block of a HEADERS frame is what is left of padding and priority', async () => {
  const payload = Buffer.from('020000000010828400', 'hex')
  assert.deepEqual(Buffer.from(blockFragment(payload, 0)!), payload)
  assert.equal(Buffer.from(blockFragment(Buffer.from('0282840000', 'hex'), 0x8)!).toString('hex'), '8284')
  assert.equal(
    Buffer.from(blockFragment(Buffer.from('80000000ff8284', 'hex'), 0x20)!).toString('hex'),
    '8284',
  )
  assert.equal(blockFragment(Buffer.from('0982', 'hex'), 0x8), null)
  assert.equal(blockFragment(Buffer.from('8284', 'hex'), 0x20), null)
})
