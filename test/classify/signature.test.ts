import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { type FingerprintType, isFingerprint } from '../../src/classify/known/signature.ts'
import { parseSoftware } from '../../src/classify/known/software.ts'
import { softwareDocument } from '../../src/classify/known/software-document.ts'
import { ja4 } from '../../src/fingerprint/ja4.ts'
import { ja4h } from '../../src/fingerprint/ja4plus/ja4h.ts'
import { ja4s } from '../../src/fingerprint/ja4plus/ja4s.ts'
import { stableKey } from '../../src/fingerprint/stable-key.ts'
import type { ClientHello } from '../../src/wire/client-hello.ts'
import { ANY_CHARACTER } from '../any-character.ts'

const u16 = fc.oneof(fc.nat(0xffff), fc.constantFrom(0x0304, 0x0303, 0x0300, 0x0002, 0xfeff, 0xfefd, 0xfefc))
const bytes = fc.uint8Array({ maxLength: 4 })
const transport = fc.constantFrom('tcp' as const, 'quic' as const, 'dtls' as const)
const TOKEN = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

test('every hello has fingerprints that a signature can be written for', async () => {
  const hello = fc.record({
    legacyVersion: u16,
    ciphers: fc.array(u16, { maxLength: 120 }),
    extensions: fc.array(u16, { maxLength: 8 }),
    supportedVersions: fc.option(fc.array(u16, { maxLength: 3 })),
    signatureAlgorithms: fc.array(u16, { maxLength: 3 }),
    alpn: fc.array(bytes, { maxLength: 2 }),
  })
  fc.assert(
    fc.property(hello, transport, (said, over) => {
      const of = said as unknown as ClientHello
      assert.ok(isFingerprint('ja4', ja4(of, over)), ja4(of, over))
      assert.ok(isFingerprint('stable', stableKey(of, over)), stableKey(of, over))
    }),
  )
})

test('what decides is whole but for cookies, and is written as it was read', async () => {
  const [a, b] = ['a'.repeat(12), 'b'.repeat(12)]
  const document = (signature: object) => {
    const signatures = [{ ...signature, decisive: true, source: 'seen', date: '2026-11-21' }]
    return { id: 'x', name: 'X', kind: 'agent', category: 'custom', signatures }
  }
  const good = [
    { ja4: `t13d1517h2_${a}_${b}` },
    { ja4x: `${a}_${b}_${a}` },
    ...['*_*', `${a}_*`, `${a}_${b}`].map((cookies) => ({ ja4h: `ge11cn110000_${a}_${cookies}` })),
  ]
  for (const each of good) assert.deepEqual(softwareDocument(parseSoftware(document(each))), document(each))
  const bad = [
    ...[{ ja4: `t13d1517h2_${a}_*` }, { ja4x: `*_${a}_*` }, { ja4s: `t130200_1301_${a}` }],
    ...[{ ja4h: `ge11cn110000_*_${a}_${b}` }, { ja4h: `*_${a}_*_*` }, { ja4h: `ge11cn110000_${a}_*_${b}` }],
    ...[{ user_agent: 'thing/' }, { header: 'x-thing' }, { header: 'x-thing', value: 'one' }],
  ]
  for (const each of bad)
    assert.throws(
      () => parseSoftware(document(each)),
      /decisive: is allowed only for a complete/,
      JSON.stringify(each),
    )
})

test('so has every answer to one', async () => {
  const answer = fc.record({
    legacyVersion: u16,
    selectedVersion: fc.option(u16),
    cipher: u16,
    extensions: fc.array(u16, { maxLength: 120 }),
    alpn: fc.option(bytes),
  })
  fc.assert(
    fc.property(answer, transport, (said, over) => {
      const found = ja4s(said as never, over)
      assert.ok(isFingerprint('ja4s', found), found)
    }),
  )
})

test('and every request, whatever its method, but one of a single letter', async () => {
  const letters = fc.constantFrom(...TOKEN)
  const head = fc.record({
    method: fc.oneof(
      fc.string({ unit: letters, minLength: 2, maxLength: 9 }),
      fc.constantFrom('M-SEARCH', 'GET'),
    ),
    target: fc.constant('/'),
    version: fc.constantFrom('10' as const, '11' as const, '20' as const, '30' as const),
    rawHeaders: fc
      .array(
        fc.tuple(
          fc.constantFrom('accept-language', 'cookie', 'Referer', 'x-a'),
          fc.string({ unit: ANY_CHARACTER }),
        ),
      )
      .map((pairs) => pairs.flat()),
  })
  fc.assert(
    fc.property(head, (said) => {
      assert.ok(isFingerprint('ja4h', ja4h(said)), ja4h(said))
    }),
  )
  assert.ok(!isFingerprint('ja4h', ja4h({ method: 'M', target: '/', version: '11', rawHeaders: [] })))
})

const HASHES = '0123456789ab_cdef01234567'
const VALID: readonly (readonly [FingerprintType, string])[] = [
  ['ja4', `dd1i440200_${HASHES}`],
  ['ja4', `dd3d0505h2_${HASHES}`],
  ['ja4', `t00i000000_${HASHES}`],
  ['ja4', `ts3i120000_*_cdef01234567`],
  ['ja4s', 'dd20200_c0ff_0123456789ab'],
  ['ja4h', `m-11cn10enus_${HASHES}_*`],
  ['ja4h', `*_*_${HASHES}`],
  ['stable', 'gs1-dd2i440200-0123456789ab-cdef01234567'],
]
const INVALID: readonly (readonly [FingerprintType, string])[] = [
  ['ja4', '*_*_*'],
  ['ja4', `t14d1517h2_${HASHES}`],
  ['ja4', `dd4i440200_${HASHES}`],
  ['ja4', `x13d1517h2_${HASHES}`],
  ['ja4s', 't990200_c0ff_0123456789ab'],
  ['ja4h', `ge12nn10enus_${HASHES}_*`],
  ['ja4h', `g(11nn10enus_${HASHES}_*`],
  ['ja4h', `g11nn10enus_${HASHES}_*`],
  ['ja4x', '*_*_*'],
  ['stable', 'gs1-t14i440200-0123456789ab-cdef01234567'],
]

test('refuses fingerprints that no program writes', async () => {
  for (const [type, value] of VALID) assert.ok(isFingerprint(type, value), value)
  for (const [type, value] of INVALID) assert.ok(!isFingerprint(type, value), value)
})
