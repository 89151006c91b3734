import assert from 'node:assert/strict'
import { argon2Sync } from 'node:crypto'
import { test } from 'tap'
import {
  codeAt,
  codeUri,
  hashOfRecoveryCode,
  newCodeSecret,
  newRecoveryCodes,
  stepOfCode,
} from '../../src/manage/auth/people/one-time-codes.ts'
import { isOutdated, PasswordHasher, passwordProblem } from '../../src/manage/auth/people/password-hash.ts'

test('what a password has to be', async () => {
  for (const [password, problem] of [
    ['eleven char', /fewer than 12 characters/],
    ['a', /fewer than 12/],
    ['💥'.repeat(11), /fewer than 12/],
    ['é'.normalize('NFD').repeat(11), /fewer than 12/],
    ['x'.repeat(1_025), /more than 1024 bytes/],
    ['💥'.repeat(257), /more than 1024 bytes/],
    [`${'x'.repeat(20)}\ud800`, /not valid Unicode text/],
  ] as const)
    assert.match(passwordProblem(password) ?? '', problem, password)
  for (const password of [
    'twelve chars',
    '💥'.repeat(12),
    ' '.repeat(12),
    'x'.repeat(1_024),
    '\0'.repeat(12),
  ])
    assert.equal(passwordProblem(password), null)
})

test('a password is known again, however its letters are composed, and no other is', async () => {
  const hasher = new PasswordHasher()
  const stored = await hasher.hash('kräftige Suppe')
  assert.match(stored, /^\$argon2id\$v=19\$m=65536,t=3,p=1\$[\w+/]{22}\$[\w+/]{43}$/)
  assert.notEqual(await hasher.hash('kräftige Suppe'), stored)
  for (const [password, isRight] of [
    ['kräftige Suppe', true],
    ['kräftige Suppe'.normalize('NFD'), true],
    ['kräftige suppe', false],
    ['kräftige Suppe ', false],
    ['', false],
  ] as const)
    assert.equal(await hasher.isRight(password, stored), isRight, password)
})

test('hashes with other parameters, or of other programs, are read; what is none is damage', async () => {
  const hasher = new PasswordHasher()
  // RFC 9106 §5.3 has a secret and associated data, which are not used here: node:crypto is held against it instead.
  const rfc = argon2Sync('argon2id', {
    ...{ message: Buffer.alloc(32, 1), nonce: Buffer.alloc(16, 2), secret: Buffer.alloc(8, 3) },
    ...{ associatedData: Buffer.alloc(12, 4), parallelism: 4, tagLength: 32, memory: 32, passes: 3 },
  })
  assert.equal(rfc.toString('hex'), '0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659')
  // The reference implementation's test of argon2id: src/test.c of P-H-C/phc-winner-argon2.
  const reference = '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4'
  assert.equal(await hasher.isRight('password', reference), true)
  assert.equal(await hasher.isRight('Password', reference), false)
  assert.deepEqual([isOutdated(reference), isOutdated(await hasher.hash('some password'))], [true, false])
  for (const text of [
    '',
    'password',
    '$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4',
    '$argon2id$v=19$m=9999999,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4',
    '$argon2id$v=19$m=256,t=999,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4',
    '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$',
  ])
    await assert.rejects(hasher.isRight('password', text), { name: 'Fault', code: 'STORE_DAMAGED' })
})

test('as much is done where there is no password to compare with, and none is right', async () => {
  const asked: unknown[] = []
  const hasher = new PasswordHasher(async (algorithm, { message: _, nonce, ...rest }) => {
    asked.push([algorithm, Buffer.byteLength(nonce), rest])
    // What nobody has is all zeros.
    return Buffer.alloc(rest.tagLength)
  })
  const stored = await new PasswordHasher().hash('a phrase of some words')
  for (const each of [stored, null])
    assert.equal(await hasher.isRight('another phrase of words', each), false)
  const work = { memory: 65_536, passes: 3, parallelism: 1, tagLength: 32 }
  assert.deepEqual(asked, [
    ['argon2id', 16, work],
    ['argon2id', 16, work],
  ])
})

test('few are hashed at once, few wait, and the others are told', async () => {
  const hasher = new PasswordHasher()
  const results = await Promise.allSettled(
    Array.from({ length: 60 }, () => hasher.isRight('password', QUICK)),
  )
  const refused = results.filter(({ status }) => status === 'rejected')
  assert.equal(refused.length, 8)
  for (const each of refused) assert.equal((each as PromiseRejectedResult).reason.code, 'PASSWORDS_TOO_MANY')
  assert.equal(await hasher.isRight('password', QUICK), true)
})

test('one-time codes are those of RFC 6238, each of its half minute and those beside it', async () => {
  // Appendix B, of which six digits are what apps show.
  const secret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
  assert.equal(codeAt(secret, 1), '287082')
  for (const [seconds, code] of [
    [1_111_111_109, '07081804'],
    [1_111_111_111, '14050471'],
    [1_234_567_890, '89005924'],
    [2_000_000_000, '69279037'],
    [20_000_000_000, '65353130'],
  ] as const) {
    const step = Math.floor(seconds / 30)
    assert.equal(codeAt(secret, step), code.slice(-6))
    for (const [laterS, found] of [
      [0, step],
      [30, step],
      [-30, step],
      [60, null],
      [-60, null],
    ] as const)
      assert.equal(
        stepOfCode(code.slice(-6), secret, (seconds + laterS) * 1000),
        found,
        `${seconds} ${laterS}`,
      )
  }
  for (const code of ['', '12345', '1234567', '12345a', '１２３４５６', '-12345'])
    assert.equal(stepOfCode(code, secret, 59_000), null, code)
})

test('what an app needs for codes, and codes for who has lost it', async () => {
  const secret = newCodeSecret()
  assert.match(secret, /^[A-Z2-7]{32}$/)
  assert.match(codeAt(secret, 1), /^\d{6}$/)
  assert.equal(
    codeUri('ABC', 'a b+c&d@example.com'),
    'otpauth://totp/Gatehouse:a%20b%2Bc%26d%40example.com?secret=ABC&issuer=Gatehouse',
  )
  const codes = newRecoveryCodes()
  assert.equal(new Set(codes).size, 10)
  for (const code of codes) {
    assert.match(code, /^(?:[a-z2-7]{4}-){3}[a-z2-7]{4}$/)
    const hash = hashOfRecoveryCode(code)
    assert.equal(hashOfRecoveryCode(` ${code.toUpperCase().replaceAll('-', ' ')} `), hash)
  }
  for (const code of ['', '123456', 'abcd-efgh-ijkl-mno', 'abcd-efgh-ijkl-mno1'])
    assert.equal(hashOfRecoveryCode(code), null)
})

/** Of "password", in a millisecond. */
const QUICK = '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4'
