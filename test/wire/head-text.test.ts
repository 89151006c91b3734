import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { readHeadText } from '../../src/wire/head-text.ts'
import { timeBox } from '../time-box.ts'

test('reads a request line and headers up to the body', async () => {
  assert.deepEqual(readHeadText('\n\nGET /a?b=c HTTP/1.1\r\nHost: a\r\nX:  1 \r\nx:2\r\n\r\nnot: this'), {
    from: 'a request',
    line: { method: 'GET', target: '/a?b=c', version: '1.1', number: 3 },
    headers: [
      { name: 'Host', value: 'a', line: 4 },
      { name: 'X', value: '1', line: 5 },
      { name: 'x', value: '2', line: 6 },
    ],
    oddLines: [],
  })
})

test('reads only the sent lines of curl -v', async () => {
  const text = '* Connected\n> GET / HTTP/2\n> Host: a\n* a note\n> A: b\n> \n< HTTP/2 200\n< c: d\n'
  assert.deepEqual(readHeadText(text), {
    from: 'curl -v output',
    line: { method: 'GET', target: '/', version: '2', number: 2 },
    headers: [
      { name: 'Host', value: 'a', line: 3 },
      { name: 'A', value: 'b', line: 5 },
    ],
    oddLines: [],
  })
})

test('reads text without a request line as headers, and lists other lines', async () => {
  assert.deepEqual(readHeadText(':authority: a\nb: c\nodd\nGET / HTTP/1.1'), {
    from: 'headers',
    line: null,
    headers: [
      { name: ':authority', value: 'a', line: 1 },
      { name: 'b', value: 'c', line: 2 },
    ],
    oddLines: [3, 4],
  })
  for (const text of ['', ' \n', '\r\n\r\n'])
    assert.deepEqual(readHeadText(text), { from: 'headers', line: null, headers: [], oddLines: [] })
})

test('reads any text', async () => {
  const text = fc.string({ unit: fc.constantFrom('>', ' ', ':', '\n', '\r', 'a', 'GET / HTTP/1.1', '\0') })
  fc.assert(
    fc.property(text, (given) => {
      const { headers, oddLines } = readHeadText(given)
      const lines = given.split(/\r\n|\n|\r/).length
      assert.ok([...headers.map(({ line }) => line), ...oddLines].every((line) => line >= 1 && line <= lines))
    }),
    timeBox(5_000, 1_000),
  )
})
