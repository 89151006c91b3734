import assert from 'node:assert/strict'
import { test } from 'tap'
import { type Column, renderTable } from '../../src/terminal/table.ts'

const columns: readonly Column[] = [
  { title: 'Server', flexible: true },
  { title: 'JA4' },
  { title: 'Count', align: 'right' },
  { title: 'Agent', flexible: true },
]
const rows = [
  ['api.example.com', 't13d1516h2', '12', 'a long name of an agent'],
  ['localhost', 't13d1516h2', '3', 'curl'],
]

test('columns stand under their titles, and no line ends in blanks', async () => {
  assert.deepEqual(renderTable(columns, rows, 80), [
    'Server           JA4         Count  Agent',
    'api.example.com  t13d1516h2     12  a long name of an agent',
    'localhost        t13d1516h2      3  curl',
  ])
})

test('the widest flexible column gives way first, until the table fits', async () => {
  assert.deepEqual(renderTable(columns, rows, 50), [
    'Server          JA4         Count  Agent',
    'api.example.c…  t13d1516h2     12  a long name of…',
    'localhost       t13d1516h2      3  curl',
  ])
})

test('only flexible columns are cut, and with Infinity none', async () => {
  assert.ok(renderTable(columns, rows, 1).every((line, index) => index === 0 || line.includes('t13d1516h2')))
  assert.deepEqual(renderTable(columns, rows, Number.POSITIVE_INFINITY), renderTable(columns, rows, 80))
})

test('no table is wider than asked where its flexible columns can help it', async () => {
  for (let width = 39; width < 80; width++) {
    assert.ok(
      renderTable(columns, rows, width).every((line) => line.length <= width),
      `${width}`,
    )
  }
})

test('a wide character takes two columns, and is not cut in half', async () => {
  const agent: readonly Column[] = [{ title: 'Agent', flexible: true }, { title: 'n' }]
  assert.deepEqual(
    renderTable(
      agent,
      [
        ['日本語', '1'],
        ['🤖🤖', '2'],
        ['e\u0301te\u0301', '3'],
      ],
      80,
    ),
    ['Agent   n', '日本語  1', '🤖🤖    2', 'e\u0301te\u0301     3'],
  )
  assert.deepEqual(renderTable(agent, [['日本語日本語', '1']], 11), ['Agent     n', '日本語…   1'])
})

test('what a peer sent reaches the terminal only as text', async () => {
  const [, line] = renderTable([{ title: 'Server' }], [['a\x1b]0;owned\x07\u202eb\u009b\n']], 80)
  assert.equal(line, 'a\\u{1b}]0;owned\\u{7}\\u{202e}b\\u{9b}\\u{a}')
})

test('a table without rows is its titles', async () => {
  assert.deepEqual(renderTable(columns, [], 80), ['Server  JA4  Count  Agent'])
})
