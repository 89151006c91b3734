import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { Reader } from '../../src/wire/reader.ts'
import { BUDGET } from '../vectors/arbitraries.ts'

/** What a Reader promises, in the plainest words: a list of bytes that is empty once a read did not fit. */
class Model {
  ok = true
  #bytes: number[]

  constructor(bytes: readonly number[]) {
    this.#bytes = [...bytes]
  }

  get left(): number {
    return this.#bytes.length
  }

  take(length: number): number[] {
    if (length <= this.#bytes.length) return this.#bytes.splice(0, length)
    this.ok = false
    this.#bytes = []
    return []
  }

  number(length: number): number {
    return this.take(length).reduce((value, byte) => value * 256 + byte, 0)
  }
}

type Plain = 'u8' | 'u16' | 'u24' | 'u32' | 'u16s'
type Long = 'take' | 'skip' | 'sub'
type Read = readonly [Plain] | readonly [Long, length: number]

const reads: fc.Arbitrary<Read[]> = fc.array(
  fc.oneof(
    fc.tuple(fc.constantFrom<Plain>('u8', 'u16', 'u24', 'u32', 'u16s')),
    fc.tuple(fc.constantFrom<Long>('take', 'skip', 'sub'), fc.nat(12)),
  ),
)

test('reads like a list of bytes, which is empty for good after a read that does not fit', async () => {
  const cases = fc.property(fc.uint8Array({ maxLength: 40 }), fc.nat(4), reads, (bytes, start, sequence) => {
    const reader = new Reader(bytes, Math.min(start, bytes.length))
    const model = new Model([...bytes.subarray(start)])
    for (const read of sequence) {
      assert.deepEqual(readerSays(reader, read, bytes), modelSays(model, read))
      assert.equal(reader.ok, model.ok)
      assert.equal(reader.left, model.left)
      if (model.ok) assert.equal(reader.at, bytes.length - model.left)
    }
  })
  fc.assert(cases, BUDGET)
})

function readerSays(reader: Reader, [kind, length = 0]: Read, bytes: Uint8Array): unknown {
  if (kind === 'skip') return reader.skip(length)
  if (kind === 'take') {
    const taken = reader.take(length)
    if (taken.length > 0) assert.equal(taken.buffer, bytes.buffer, 'a view, not a copy')
    return [...taken]
  }
  if (kind === 'sub') {
    const inner = reader.sub(length)
    return [inner.ok, [...inner.take(inner.left)]]
  }
  return reader[kind]()
}

function modelSays(model: Model, [kind, length = 0]: Read): unknown {
  if (kind === 'skip') return void model.take(length)
  if (kind === 'take') return model.take(length)
  if (kind === 'sub') {
    const taken = model.take(length)
    return [model.ok, taken] // an inner reader starts out failed when the outer one has
  }
  if (kind === 'u16s') {
    const values: number[] = []
    while (model.left > 1) values.push(model.number(2))
    if (model.left > 0) model.number(2) // half a value cannot be read
    return values
  }
  return model.number(Number(kind.slice(1)) / 8)
}

test('takes the whole of a reader as one character a byte', async () => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index))
  const reader = new Reader(bytes)
  assert.equal(reader.latin1(), bytes.toString('latin1'))
  assert.deepEqual([reader.left, reader.ok], [0, true])
})
