import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import {
  JA4_TYPES,
  type Ja4Type,
  partsOfFingerprint,
  wrongInFingerprint,
} from '../../src/classify/known/fingerprint-form.ts'
import { isFingerprint } from '../../src/classify/known/signature.ts'

const A = 't13d1516h2'
const B = '8daaf6152771'
const C = 'e5627efa2ab1'

const WRONG: readonly (readonly [type: Ja4Type, text: string, wrong: string])[] = [
  ['ja4', '', 'is "", which has one part; a ja4 has 3 parts separated by _'],
  ['ja4', `${A}_${B}`, `is "${A}_${B}", which has 2 parts; a ja4 has 3 parts separated by _`],
  ['ja4', `${A}_${B}_${C}_`, `is "${A}_${B}_${C}_", which has 4 parts; a ja4 has 3 parts separated by _`],
  ['ja4', `t13d1516h_${B}_${C}`, 'has a part a that is "t13d1516h", which has 9 characters; expected 10'],
  [
    'ja4',
    `x13d1516h2_${B}_${C}`,
    'has a part a that is "x13d1516h2": its transport is "x"; expected t, q or d',
  ],
  [
    'ja4',
    `t14d1516h2_${B}_${C}`,
    'has a part a that is "t14d1516h2": its version is "14"; expected 10, 11, 12, 13, s2, s3, d1, d2, d3 or 00',
  ],
  [
    'ja4',
    `t13x1516h2_${B}_${C}`,
    'has a part a that is "t13x1516h2": its server name (SNI) flag is "x"; expected d or i',
  ],
  [
    'ja4',
    `t13d1x16h2_${B}_${C}`,
    'has a part a that is "t13d1x16h2": its number of ciphers is "1x"; expected two digits',
  ],
  [
    'ja4',
    `t13d15 6h2_${B}_${C}`,
    'has a part a that is "t13d15 6h2": its number of extensions is " 6"; expected two digits',
  ],
  [
    'ja4',
    `t13d1516h/_${B}_${C}`,
    'has a part a that is "t13d1516h/": its ALPN value is "h/"; expected two letters or digits',
  ],
  [
    'ja4',
    `${A}_8DAAF6152771_${C}`,
    'has a part b that is "8DAAF6152771"; expected 12 hexadecimal digits in lower case',
  ],
  [
    'ja4',
    `${A}_${B}_e5627efa2ab`,
    'has a part c that is "e5627efa2ab"; expected 12 hexadecimal digits in lower case',
  ],
  ['ja4', `${A}_*_${C}`, 'has a part b that is "*"; expected 12 hexadecimal digits in lower case'],
  ['ja4', `${A}_${B}_${C}\n`, `has a part c that is "${C}\\n"; expected 12 hexadecimal digits in lower case`],
  [
    'ja4s',
    't130200_13z1_a56c5b993250',
    'has a part b that is "13z1"; expected 4 hexadecimal digits in lower case',
  ],
  [
    'ja4h',
    `ge11xn12enus_${B}_${C}_${C}`,
    'has a part a that is "ge11xn12enus": its cookie flag is "x"; expected c or n',
  ],
  [
    'ja4h',
    `ge11nn12enus_${B}_${C}_zzzzzzzzzzzz`,
    'has a part d that is "zzzzzzzzzzzz"; expected 12 hexadecimal digits in lower case',
  ],
  ['ja4x', `${B}_${C}`, `is "${B}_${C}", which has 2 parts; a ja4x has 3 parts separated by _`],
]

test('what is wrong with a fingerprint is said with its part', async () => {
  for (const [type, text, wrong] of WRONG) assert.equal(wrongInFingerprint(type, text, false), wrong, text)
  assert.equal(wrongInFingerprint('ja4', '*_*_*', true), 'is only *; give at least one part')
  assert.match(wrongInFingerprint('ja4', '_'.repeat(1_000_000), false)!, /^is "_+….*too long/)
})

test('what has the form of a signature is all right, and nothing else is', async () => {
  const piece = fc.constantFrom(A, B, C, '*', '1301', 't130200', 'ge11nn12enus', '__11nn12enus', 'x', '', '_')
  fc.assert(
    fc.property(fc.constantFrom(...JA4_TYPES), fc.array(piece, { maxLength: 5 }), (type, pieces) => {
      const text = pieces.join('_')
      assert.equal(wrongInFingerprint(type, text, true) === null, isFingerprint(type, text), text)
      if (!isFingerprint(type, text)) return
      assert.equal(partsOfFingerprint(type, text).join('_'), text)
      assert.equal(wrongInFingerprint(type, text, false) === null, !text.split('_').includes('*'), text)
    }),
    { numRuns: 2000 },
  )
})
