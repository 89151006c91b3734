import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { HpackDecoder } from '../../../src/wire/h2/hpack-decoder.ts'
import { HpackEncoder } from '../../../src/wire/h2/hpack-encoder.ts'
import { decode, type Field, garbageCollector, ModelDecoder } from './hpack-model.ts'
import { timeBox } from '../../time-box.ts'

test('hpack encoder: writes a field in the shortest way', async () => {
  const encoder = new HpackEncoder()
  const blocks: readonly (readonly [block: string, ...fields: readonly string[]])[] = [
    ['488264025885aec3771a4b', ':status', '302', 'cache-control', 'private'],
    ['4803333037bf', ':status', '307', 'cache-control', 'private'],
    ['88bf', ':status', '200', 'cache-control', 'private'],
    ['c0bf', ':status', '302', 'cache-control', 'private'],
    // An exact match in the static table, an empty value, a value that Huffman code would lengthen.
    ['90', 'accept-encoding', 'gzip, deflate'],
    ['a1', 'date', ''],
    ['6403ffffff', 'expires', '\xff\xff\xff'],
    // A new name, then its index.
    ['4003782d610131', 'x-a', '1'],
    ['be', 'x-a', '1'],
    ['7e0132', 'x-a', '2'],
  ]
  for (const [block, ...fields] of blocks) {
    encoder.begin(0)
    for (let i = 0; i < fields.length; i += 2) encoder.field(fields[i]!, fields[i + 1]!)
    assert.equal(Buffer.from(encoder.end()).toString('hex'), block)
  }
})

test('hpack encoder: a status with an index in the static table is one byte', async () => {
  const indexes: Readonly<Record<number, string>> = {
    ...{ 200: '88', 204: '89', 206: '8a', 304: '8b', 400: '8c', 404: '8d', 500: '8e' },
  }
  for (const [code, block] of Object.entries(indexes)) {
    const encoder = new HpackEncoder()
    encoder.begin(0)
    encoder.status(Number(code))
    assert.equal(Buffer.from(encoder.end()).toString('hex'), block)
  }
})

test('hpack encoder: free bytes before a block are the caller’s', async () => {
  const encoder = new HpackEncoder()
  const decoder = new HpackDecoder()
  for (const room of [0, 9, 5000]) {
    encoder.begin(room)
    encoder.status(200)
    encoder.field('x', 'y'.repeat(3000))
    const bytes = encoder.end()
    assert.equal(decode(decoder, bytes.subarray(room))?.[1], '200')
  }
})

test('hpack encoder: secrets are never indexed, and say so', async () => {
  const secrets: readonly Field[] = [
    ['set-cookie', 'session=5f1e0c9ad2b7'],
    ['authorization', 'Bearer 5f1e0c9ad2b7'],
    ['proxy-authorization', 'Basic dTpw'],
    ['www-authenticate', 'Negotiate dTpw'],
    ['authentication-info', 'rspauth=1'],
    ['cookie', 'a=b'],
    ['x-api-key', '5f1e0c9ad2b7'],
    ['x-csrf-token', '5f1e0c9ad2b7'],
  ]
  const encoder = new HpackEncoder()
  const held = encoder.heldBytes
  for (const field of [...secrets, ...secrets]) {
    assert.equal(encode(encoder, [field])[0]! >> 4, 1, field[0])
    assert.equal(encoder.heldBytes, held, field[0])
  }
  // §7.1.3: a long cookie cannot be guessed.
  const cookie: Field = ['cookie', 'session=5f1e0c9ad2b75f1e0c9ad2b7']
  encode(encoder, [cookie])
  assert.equal(encode(encoder, [cookie]).toString('hex'), 'be')
})

test('hpack encoder: what differs in each response does not push out what does not', async () => {
  const encoder = new HpackEncoder()
  const lasting: readonly Field[] = [
    ['server', 'gunicorn'],
    ['content-type', 'text/html; charset=utf-8'],
    ['x-frame-options', 'DENY'],
  ]
  const blocks = Array.from({ length: 300 }, (_, i) => {
    const changing: readonly Field[] = [
      ['etag', `"${i}"`],
      ['content-length', `${i}`],
      ['x-request-id', `5f1e0c9a-d2b7-${i}`],
      ['date', `Thu, 26 Nov 2026 18:00:${i}`],
      ['content-security-policy', `script-src 'nonce-${i}' ${'https://cdn.example.test '.repeat(40)}`],
    ]
    return [encode(encoder, lasting), encode(encoder, changing)] as const
  })
  assert.equal(blocks.at(-1)![0].length, lasting.length)
  // A value sent again is worth an entry, however many values its name had.
  for (let second = 0; second < 100; second++) {
    const date: Field = ['date', `Thu, 26 Nov 2026 18:${second}`]
    encode(encoder, [date])
    if (second > 0) encode(encoder, [date])
  }
  const often: Field = ['x-cache', 'HIT']
  encode(encoder, [often])
  for (let i = 0; i < 100; i++) {
    encode(encoder, [['x-cache', `${i}`]])
    assert.equal(encode(encoder, [often]).length, 1)
  }
})

test('hpack encoder: a date that several responses of one second share is indexed', async () => {
  const encoder = new HpackEncoder()
  for (let second = 0; second < 200; second++) {
    const date: Field = ['date', `Thu, 26 Nov 2026 18:00:${second}`]
    encode(encoder, [date])
    assert.equal(encode(encoder, [date]).length, 1, `${second}`)
  }
})

test('hpack encoder: fields of any age are judged anew', async () => {
  const encoder = new HpackEncoder()
  // All numbers that a field can have were of fields that came again.
  for (let i = 0; i < 300; i++)
    for (const _ of [0, 1]) encode(encoder, [['date', `Thu, 26 Nov 2026 18:00:${i}`]])
  const server: Field = ['server', 'gunicorn']
  encode(encoder, [server])
  for (let i = 0; i < 300; i++) encode(encoder, [['x-request-id', `5f1e0c9a-d2b7-${i}`]])
  assert.equal(encode(encoder, [server]).length, 1)
})

test('hpack encoder: large fields are indexed as long as they leave room for others', async () => {
  const encoder = new HpackEncoder()
  const server: Field = ['server', 'gunicorn']
  const large: Field = ['content-security-policy', 'x'.repeat(2900)]
  const tooLarge: Field = ['link', 'x'.repeat(3100)]
  for (const fields of [[server], [large], [tooLarge]]) encode(encoder, fields)
  assert.equal(encode(encoder, [server]).length, 1)
  assert.equal(encode(encoder, [large]).length, 1)
  assert.ok(encode(encoder, [tooLarge]).length > 1)
})

test('hpack encoder: a large response does not leave a large buffer', async () => {
  const encoder = new HpackEncoder()
  encode(encoder, [['set-cookie', 'x'.repeat(200_000)]])
  assert.ok(encoder.end().buffer.byteLength > 100_000)
  encode(encoder, [])
  assert.ok(encoder.end().buffer.byteLength < 10_000)
})

test('hpack encoder: announces the smallest and the last size of its table', async () => {
  const updates: readonly (readonly [allowed: readonly number[], block: string])[] = [
    [[4096], ''],
    [[65_536], ''],
    [[65_536, 4096], ''],
    [[0], '20'],
    [[0], ''],
    [[4096], '3fe11f'],
    [[0, 4096], '203fe11f'],
    [[100, 30, 4096, 2000], '3e3fb10f'],
    [[1337], '3f9a0a'],
    [[10], '2a'],
    [[2 ** 32 - 1], '3fe11f'],
  ]
  const encoder = new HpackEncoder()
  for (const [allowed, block] of updates) {
    for (const bytes of allowed) encoder.allow(bytes)
    assert.equal(encode(encoder, []).toString('hex'), block, `${allowed}`)
  }
})

test('hpack encoder: evicts what a smaller table has no room for', async () => {
  const encoder = new HpackEncoder()
  const decoder = new HpackDecoder()
  const fields: readonly Field[] = [
    ['x-a', '1'],
    ['x-b', '2'],
    ['x-c', '3'],
  ] // 36 bytes each
  for (const bytes of [4096, 108, 107, 72, 36, 35, 4096, 0, 4096]) {
    encoder.allow(bytes)
    for (const _ of [0, 1]) assert.deepEqual(decode(decoder, encode(encoder, fields)), fields.flat())
    assert.equal(decoder.heldBytes, Math.min(108, Math.floor(bytes / 36) * 36), `${bytes}`)
  }
  // The field expected next may be one of them.
  const empty: readonly Field[] = [
    ['x-a', '1'],
    ['', ''],
  ]
  for (const list of [empty, empty.slice(0, 1)])
    assert.deepEqual(decode(decoder, encode(encoder, list)), list.flat())
  encoder.allow(0)
  encoder.allow(4096)
  assert.deepEqual(decode(decoder, encode(encoder, empty.slice(1))), ['', ''])
})

test('hpack encoder: strings of any length, in Huffman code and without', async () => {
  const lengths = [
    ...Array.from({ length: 600 }, (_, i) => i),
    16_382,
    16_384,
    20_671,
    20_672,
    70_000,
    200_000,
  ]
  for (const length of lengths) {
    for (const character of ['a', '\xff', 'X']) {
      const field: Field = [`n${character.repeat(length % 300)}`, character.repeat(length)]
      const list = decode(new HpackDecoder(), encode(new HpackEncoder(), [field]))
      assert.deepEqual(list, field, `${length}`)
    }
  }
})

test('hpack encoder: a part of a long string does not keep all of it in memory', async () => {
  const collect = garbageCollector()
  const encoders: HpackEncoder[] = []
  collect()
  const before = process.memoryUsage().heapUsed
  for (let i = 0; i < 100; i++) {
    const head = `${i}`.padEnd(1_000_000, 'server: a-server-with-a-long-name')
    const encoder = new HpackEncoder()
    encode(encoder, [[head.slice(10, 30), head.slice(30, 60)]])
    encoders.push(encoder)
  }
  collect()
  assert.ok(process.memoryUsage().heapUsed - before < 20_000_000)
  assert.equal(encoders.length, 100)
})

test('hpack encoder: what it writes, the decoder and the model read', async () => {
  const byte = fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code))
  const text = fc.string({ unit: byte, maxLength: 200 })
  const known = [
    'content-type',
    'date',
    'set-cookie',
    'etag',
    'cookie',
    'accept-encoding',
    ':path',
    'x-a',
    'x-b',
  ]
  const name = fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...known) }, text)
  const value = fc.oneof(
    fc.constantFrom('', '/', 'gzip, deflate', 'c'.repeat(300), 'd'.repeat(3500)),
    text,
    byte,
  )
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.array(fc.tuple(name, value), { maxLength: 30 }) },
    { weight: 1, arbitrary: fc.oneof(fc.nat(5000), fc.nat(200)) },
  )
  const property = fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
    const encoder = new HpackEncoder()
    const decoder = new HpackDecoder()
    const model = new ModelDecoder()
    for (const one of steps) {
      if (typeof one === 'number') {
        encoder.allow(one)
        continue
      }
      const block = encode(encoder, one)
      assert.deepEqual(decode(decoder, block), one.flat())
      assert.deepEqual(model.decode(block), one.flat())
    }
  })
  fc.assert(property, timeBox(20_000, 2_000))
})

function encode(encoder: HpackEncoder, fields: readonly Field[]): Buffer {
  encoder.begin(9)
  for (const [name, value] of fields) encoder.field(name, value)
  return Buffer.from(encoder.end().subarray(9))
}
