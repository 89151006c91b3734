import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type Dictionary, isInnerList, parseDictionary } from 'structured-headers'
import { test } from 'tap'
import { DEFAULT_PRIORITY, parsePriority, readPriorityUpdate } from '../../../src/wire/h2/priority.ts'
import { timeBox } from '../../time-box.ts'

test('priority: urgency and incremental, as browsers write them', async () => {
  for (let urgency = 0; urgency <= 7; urgency++) {
    assert.deepEqual(parsePriority(`u=${urgency}`), { urgency, isIncremental: false })
    for (const value of [
      `u=${urgency}, i`,
      `u=${urgency},i`,
      `i,u=${urgency}`,
      ` i=?1 \t,\tu=${urgency};a=b  `,
    ])
      assert.deepEqual(parsePriority(value), { urgency, isIncremental: true }, value)
  }
  assert.deepEqual(parsePriority('i'), { urgency: 3, isIncremental: true })
  assert.deepEqual(parsePriority('u=-0, i=?0'), { urgency: 0, isIncremental: false })
  assert.equal(parsePriority(' u=1 '), parsePriority('u=1'))
})

test('priority: unknown parameters and invalid values are ignored', async () => {
  const ignored = [
    ...[
      '',
      '  ',
      'u=8',
      'u=-1',
      'u=10',
      'u=1.0',
      'u',
      'u="1"',
      'u=(1)',
      'u=?1',
      'u=a',
      'u=:AQ==:',
      'u=:AQ:',
      'u=:AQI:',
      'u=::',
      'i=1',
      'i=?0',
    ],
    ...['i=()', 'i=(?1)', 'i="?1"', 'a, b=1;c, d=("x\\"\\\\" *y);z=1.5', 'uu=1, ii', '*=1', 'u-=1'],
    // The last member of a name counts.
    ...['u=1, u=x', 'i, i=?0', 'u=1, u', 'i, i=3'],
  ]
  for (const value of ignored) assert.equal(parsePriority(value), DEFAULT_PRIORITY, value)
  const mixed = 'u=x, a=(u;u=1), u=2;u=5, i'
  assert.deepEqual(parsePriority(mixed), { urgency: 2, isIncremental: true })
})

test('priority: a malformed value is read as null', async () => {
  const malformed = [
    ...[
      'u=1,',
      ',u=1',
      'u=1,,i',
      'u=1 i',
      'u =1',
      'u= 1',
      '\tu=1',
      'u=',
      'u=1;',
      'u=1;A',
      'U=1',
      '1',
      'u=1, I',
    ],
    ...['u=1, a="', 'u=1, a="\x7f"', 'u=1, a="\\x"', 'u=1, a=(1', 'u=1, a=(1,2)', 'u=1, a=1)', 'u=1, a=:*:'],
    ...[
      'u=1, a=?2',
      'u=1, a=1.2345',
      'u=1, a=1.',
      'u=1, a=-',
      `u=1, a=${'1'.repeat(16)}`,
      'u=1\n',
      'u=1, \xe9',
    ],
    ...['u=:u:', 'u=1, a=:AAAAA:', 'u=1, a=:A=:', 'u=1, a=:AA=:', 'u=1, a=:AAA==:', 'u=1, a=:=:'],
    ...['u=1;i;', 'u=1, a=(("x"))', 'u=1, a=:AA', 'u=1, a=@1', 'u=1, a=%"x"', 'u=1, a=(1)b', 'u=1, a="b"c'],
  ]
  for (const value of malformed) assert.equal(parsePriority(value), null, value)
})

test('priority: any dictionary is what another parser of structured fields makes of it', async () => {
  const part = fc.constantFrom(
    ...[
      'u',
      'i',
      'u=1',
      'u=7',
      'i=?0',
      'a',
      '=',
      ',',
      ', ',
      ';',
      ' ',
      '\t',
      '(',
      ')',
      '"',
      '"x\\""',
      '\\',
      '?1',
      ':',
      ':AA==:',
      ':AA:',
      ':AAA=:',
    ],
    ...['1', '-', '.', '1.5', '123456789012', '*', 'A', '_', '~', '\xe9', '\n'],
  )
  let good = 0
  const property = fc.property(fc.array(part, { maxLength: 9 }), (parts) => {
    const value = parts.join('')
    const expected = reference(value)
    if (expected !== null) good++
    assert.deepEqual(parsePriority(value), expected, JSON.stringify(value))
  })
  fc.assert(property, timeBox(50_000, 2_000))
  assert.ok(good > 20)
})

test('priority: long values take time in proportion to their length', async () => {
  const parts = [
    'a,',
    'a ,',
    '\t',
    ' ',
    '(',
    'a=(',
    ';a',
    '"',
    'a="\\"',
    '1',
    ':',
    'a=(1 ',
    'a=1;b=c',
    'u=1, ',
  ]
  for (const part of parts)
    for (const end of ['', '\n', 'x', '='])
      for (const start of ['', 'u=1, ', 'a=(', 'a="', 'a=:']) {
        const priority = parsePriority(start + part.repeat(200_000 / part.length) + end)
        assert.ok(priority === null || priority === DEFAULT_PRIORITY || priority.urgency === 1)
      }
})

test('priority: a PRIORITY_UPDATE names its stream', async () => {
  const update = (hex: string, value: string) =>
    readPriorityUpdate(Buffer.concat([Buffer.from(hex, 'hex'), Buffer.from(value, 'latin1')]))
  assert.deepEqual(update('00000003', 'u=5, i'), { stream: 3, priority: { urgency: 5, isIncremental: true } })
  assert.deepEqual(update('ffffffff', ''), { stream: 0x7fff_ffff, priority: DEFAULT_PRIORITY })
  assert.deepEqual(update('00000000', 'u=5,'), { stream: 0, priority: null })
  for (let length = 0; length < 4; length++) assert.equal(update('00000003'.slice(0, 2 * length), ''), null)
})

/** By `structured-headers`, which also reads the two types that RFC 9651 added and accepts more base64. */
function reference(value: string): { urgency: number; isIncremental: boolean } | null {
  let dictionary: Dictionary
  try {
    dictionary = parseDictionary(value)
  } catch {
    return null
  }
  const [u, i] = ['u', 'i'].map((key) => {
    const member = dictionary.get(key)
    return member === undefined || isInnerList(member) ? null : member[0]
  })
  const urgency = typeof u === 'number' && Number.isInteger(u) && u >= 0 && u <= 7 ? Math.abs(u) : 3
  return { urgency, isIncremental: i === true }
}
