import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { test } from 'tap'
import { FLEETING, GREASE, SHOWN_ELSEWHERE } from '../../src/fingerprint/left-out.ts'
import { FingerprintText, hash12 } from '../../src/fingerprint/text.ts'
import { HELLO_BYTES_MAX } from '../../src/wire/client-hello.ts'
import { BUDGET, greaseValues } from '../vectors/arbitraries.ts'

/** Any numbers, and enough of those that are left out. */
const lists = fc.array(
  fc.oneof(
    fc.nat(0xffff),
    greaseValues,
    fc.constantFrom(0x0000, 0x0010, 0x0015, 0x0023, 0x0029, 0x002a, 0x002c),
  ),
  { maxLength: 200, size: '+1' },
)
const marks = fc
  .subarray([GREASE, SHOWN_ELSEWHERE, FLEETING])
  .map((list) => list.reduce((set, mark) => set | mark, 0))

/** What each mark leaves out, in words. */
function isKept(value: number, leftOut: number): boolean {
  if (isGrease(value)) return (leftOut & GREASE) === 0
  if ([0x0000, 0x0010].includes(value)) return (leftOut & SHOWN_ELSEWHERE) === 0
  return ![0x0015, 0x0023, 0x0029, 0x002a, 0x002c].includes(value) || (leftOut & FLEETING) === 0
}

test('lists are written as hex, in order or ascending, without what is left out', async () => {
  const text = new FingerprintText() // one for all: what was written before leaves no trace
  const cases = fc.property(lists, lists, marks, (first, second, leftOut) => {
    const kept = first.filter((value) => isKept(value, leftOut))
    const tail = second.filter((value) => !isGrease(value))
    const ascending = kept.toSorted((a, b) => a - b)
    assert.equal(text.clear().list(first, leftOut).text(), hexes(kept))
    assert.equal(text.clear().sorted(first, leftOut).text(), hexes(ascending))
    if (kept.length === 0) return // then there is nothing to follow
    const both = `${hexes(ascending)}${tail.length > 0 ? '_' : ''}${hexes(tail)}`
    assert.equal(text.clear().sorted(first, leftOut).section(second).text(), both)
    assert.equal(text.hash12(), sha12(both))
    assert.equal(text.text(), both, 'hashing changes nothing')
  })
  fc.assert(cases, BUDGET)
})

test('nothing written is nothing, and its hash zeros', async () => {
  assert.equal(new FingerprintText().list([0x0a0a]).text(), '')
  assert.equal(new FingerprintText().list([0x0a0a]).section([]).hash12(), '000000000000')
})

test('the largest hello fits, as ciphers, as extensions and sorted', async () => {
  const values = Array.from({ length: HELLO_BYTES_MAX / 2 }, (_, index) => (index * 40_503) % 0x1_0000)
  assert.equal(new FingerprintText().list(values, 0).text(), hexes(values))
  const ascending = values.toSorted((a, b) => a - b)
  assert.equal(new FingerprintText().sorted(values, 0).text(), hexes(ascending))
  const half = values.slice(0, values.length / 2)
  const sections = `${hexes(half)}_${hexes(half.filter((value) => !isGrease(value)))}`
  assert.equal(new FingerprintText().list(half, 0).section(half).text(), sections)
})

test('the hash of a text is that of its bytes, one a character, and zeros for nothing', async () => {
  assert.equal(hash12(''), '000000000000')
  const bytes = fc.uint8Array({ minLength: 1 }).map((array) => Buffer.from(array))
  const cases = fc.property(bytes, (text) => assert.equal(hash12(text.toString('latin1')), sha12(text)))
  fc.assert(cases, BUDGET)
})

function sha12(text: string | Buffer): string {
  return text.length === 0 ? '000000000000' : createHash('sha256').update(text).digest('hex').slice(0, 12)
}

function hexes(values: readonly number[]): string {
  return values.map((value) => value.toString(16).padStart(4, '0')).join(',')
}

function isGrease(value: number): boolean {
  return /^(.a)\1$/.test(value.toString(16).padStart(4, '0'))
}
