import assert from 'node:assert/strict'
import fc from 'fast-check'
import { parseDictionary, serializeDictionary, serializeInnerList, serializeItem } from 'structured-headers'
import { test } from 'tap'
import {
  innerListText,
  itemText,
  readDictionary,
  readDistinctDictionary,
} from '../../src/identity/signature/structured-text.ts'
import { timeBox } from '../time-box.ts'

const INPUT =
  'sig1=("@authority" "signature-agent";key="sig1");created=1735689600;keyid="poqkL";alg="ed25519";tag="web-bot-auth"'
const BYTES = `sig1=:${Buffer.alloc(64, 7).toString('base64')}:`
const AGENT = 'sig1="https://agent.example"'

test('what is written, usual or not, is read as the strict parser reads it', async () => {
  for (const text of [
    ...[
      INPUT,
      BYTES,
      AGENT,
      `${INPUT}, other=()`,
      `${INPUT},other=();a`,
      '',
      ' ',
      'a',
      'a;b',
      'a=?1',
      'a=1.5',
    ],
    ...[
      'a=-1',
      'a=01',
      'a=999999999999999',
      'a=1000000000000000',
      'a=tok',
      'a=@1',
      'a=%"x"',
      'a=""',
      'a="\\""',
    ],
    ...[
      'a="\t"',
      'a="é"',
      'a="',
      'a=::',
      'a=:AA==:',
      'a=:AB==:',
      'a=:AA:',
      'a=:A:',
      'a=:AAA=:x',
      'a=:=:',
      'a=:-_:',
    ],
    ...[
      'a=( "x")',
      'a=("x" )',
      'a=("x"  "y")',
      'a=("x""y")',
      'a=("x"',
      'a=(',
      'a=("x");',
      'a=1;b;b',
      'a=1, a=2',
    ],
    ...[
      'a=1,',
      'a=1,,b=2',
      'a=1 ,b=2',
      'a=1,\tb=2',
      'a=1 b=2',
      'A=1',
      '1=1',
      'a =1',
      'a= 1',
      ' a=1',
      'a=1 ',
      '*=1',
    ],
    ...['a=1; b=2', 'a=1;b=', 'a=1;=2', 'a=(1 2);x=:AA==:', 'a=1.', 'a=1.0000'],
  ])
    assert.deepEqual(
      outcomeOf(() => readDictionary(text)),
      outcomeOf(() => parseDictionary(text)),
      text,
    )
})

test('what is changed anywhere is read as the strict parser reads it', async () => {
  const change = fc.record({
    text: fc.constantFrom(INPUT, BYTES, AGENT, `${INPUT}, ${AGENT}`, `a=1;b="c", ${BYTES}`),
    edits: fc.array(
      fc.record({
        at: fc.nat(200),
        length: fc.nat(3),
        by: fc.oneof(fc.constantFrom(...' ,;=:"()\\?@%*-.aA1\té'.split('')), fc.string({ maxLength: 3 })),
      }),
      { maxLength: 4 },
    ),
  })
  fc.assert(
    fc.property(change, ({ text, edits }) => {
      const changed = edits.reduce(
        (before, { at, length, by }) => before.slice(0, at) + by + before.slice(at + length),
        text,
      )
      const strict = outcomeOf(() => parseDictionary(changed))
      assert.deepEqual(
        outcomeOf(() => readDictionary(changed)),
        strict,
      )
      const distinct = outcomeOf(() => readDistinctDictionary(changed))
      if (distinct !== 'refused') assert.deepEqual(distinct, strict)
    }),
    timeBox(20_000, 3_000),
  )
})

test('what was read is written as the serializer writes it', async () => {
  for (const text of [
    INPUT,
    BYTES,
    AGENT,
    'a=("\\"\\\\" tok 1.5 ?0 :AA==:;x;y="z");n=1;t=tok;b=?0',
    'a=();a',
  ])
    for (const member of readDictionary(text).values()) {
      if (Array.isArray(member[0]))
        assert.equal(innerListText(member as never), serializeInnerList(member as never))
      else assert.equal(itemText(member as never), serializeItem(member as never))
    }
  assert.equal(serializeDictionary(readDictionary(INPUT)), INPUT)
})

test('a name that is in it twice is refused, wherever it is', async () => {
  for (const text of [
    ...['a=1, a=1', 'a=1;b=1;b=1', 'a=("x";k;k)', 'a=("x";k="1";k="1")', 'a=("x");b;c;b', 'a=tok, a=tok'],
    ...['a=tok;b=1;b=2', 'a="\\"", a=1', 'a=?1, b=2, a=?0'],
  ])
    assert.throws(() => readDistinctDictionary(text), text)
  for (const text of [
    'a=1, b=1',
    'a=1;b=1, b=1;b=1',
    'a=("x";k "x";k);k',
    'a=("\\";,");b',
    'a=%",;", b=tok',
    '',
  ])
    assert.deepEqual(readDistinctDictionary(text), parseDictionary(text))
})

function outcomeOf(read: () => unknown): unknown {
  try {
    return read()
  } catch {
    return 'refused'
  }
}
