import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { itemRanges, memberRange } from '../src/shared/json-bytes.ts'

test('finds a member of any object, and the items of any list', async () => {
  const blank = fc.constantFrom(undefined, 1, '\t')
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.array(fc.jsonValue()),
      blank,
      (object, list, space) => {
        for (const text of [
          { ...object, list },
          { list, ...object, end: null },
        ].map((each) => JSON.stringify(each, null, space))) {
          const bytes = Buffer.from(text)
          const { list: expected, ...others } = JSON.parse(text)
          const range = memberRange(bytes, 'list')!
          assert.deepEqual(parsed(bytes, range), expected)
          if (Array.isArray(expected))
            assert.deepEqual(
              [...itemRanges(bytes, range)].map((each) => parsed(bytes, each)),
              expected,
            )
          for (const [name, value] of Object.entries(others))
            assert.deepEqual(parsed(bytes, memberRange(bytes, name)!), value)
        }
      },
    ),
  )
})

test('a name counts only as a member of the object itself', async () => {
  const of = (text: string) => {
    const range = memberRange(Buffer.from(text), 'a')
    return range && text.slice(range.start, range.end)
  }
  assert.equal(of('{"b":{"a":1},"c":"\\"a\\":2","d":["a",{"a":3}]}'), null)
  assert.equal(of('{"a":1,"b":"\\\\","a":{"a":2}}'), '{"a":2}')
  assert.equal(of('["a",1]'), null)
  assert.equal(of('{"a":-1.5e3}'), '-1.5e3')
  assert.equal(of('{"a"'), '')
})

test('ends with any bytes, and does not pass over a missing comma', async () => {
  const near = fc.array(fc.constantFrom(...'{}[]",:\\a1 '), { maxLength: 30 }).map((each) => each.join(''))
  fc.assert(
    fc.property(near, (text) => {
      const bytes = Buffer.from(`{"a":${text}`)
      const range = memberRange(bytes, 'a')
      assert.ok(range === null || (range.start <= range.end && range.end <= bytes.length))
      try {
        for (const { start, end } of itemRanges(bytes, range ?? { start: 0, end: bytes.length }))
          assert.ok(start <= end && end <= bytes.length)
      } catch (error) {
        assert.ok(error instanceof SyntaxError)
      }
    }),
  )
  const list = Buffer.from('[1 2]')
  assert.throws(() => [...itemRanges(list, { start: 0, end: list.length })], SyntaxError)
})

function parsed(bytes: Buffer, { start, end }: { readonly start: number; readonly end: number }): unknown {
  return JSON.parse(bytes.toString('utf8', start, end))
}
