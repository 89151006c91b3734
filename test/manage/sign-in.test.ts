import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { createLogTo } from '../../src/shared/log.ts'
import { COMMAND_LINE } from '../../src/manage/http/audit.ts'
import { deleteUser, makeUser, startCodes } from '../../src/manage/auth/people/make-user.ts'
import { codeAt } from '../../src/manage/auth/people/one-time-codes.ts'
import { type Attempt, SignIn } from '../../src/manage/auth/people/sign-in.ts'
import { Sealer } from '../../src/manage/auth/sealer.ts'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { quickHasher } from './quick-hasher.ts'

for (const kind of KINDS) {
  test(`${kind}: who has the password is in; who has not is told nothing more`, async (t) => {
    const { attempt, actions, anna } = await begun(t, kind)
    assert.deepEqual(await attempt({}), { kind: 'signed-in', userId: anna.id, atMs: NOW_MS })
    assert.deepEqual(await attempt({ email: ' ANNA@example.com ' }), {
      ...{ kind: 'signed-in', userId: anna.id, atMs: NOW_MS },
    })
    for (const wrong of [
      { password: 'a phrase of other words' },
      { password: '' },
      { password: 'x'.repeat(100_000) },
      { email: 'nobody@example.com' },
      { email: '' },
      { email: 'a'.repeat(100_000) },
      { email: `anna@example.com${' '.repeat(400)}x` },
      { email: "' or 1=1 --" },
      { email: 'nul\u0000@example.com' },
      { email: 'ben@example.com' }, // who has none
    ])
      assert.deepEqual(await attempt(wrong), { kind: 'refused' }, JSON.stringify(wrong).slice(0, 80))
    const { signIn, failSignIn } = await actions()
    assert.deepEqual([signIn, failSignIn! > 1], [2, true])
  })

  test(`${kind}: one account is tried ten times from a network, many at once or not, and then by nobody there`, async (t) => {
    const { attempt, actions, at, one } = await begun(t, kind)
    const wrong = { password: 'a phrase of other words' }
    const kinds = (await Promise.all(Array.from({ length: 14 }, () => attempt(wrong)))).map(
      ({ kind: each }) => each,
    )
    assert.deepEqual(kinds.filter((each) => each === 'refused').length, 10)
    const throttled = await attempt({}) // whoever has the password waits, too: else it could be guessed on
    assert.ok(throttled.kind === 'throttled' && throttled.retryAfterS > 0 && throttled.retryAfterS <= 600)
    // In another process, and for another spelling, too.
    assert.equal((await attempt({ email: 'ANNA@example.com' }, await one())).kind, 'throttled')
    assert.equal((await attempt({ address: '2001:db8::1' })).kind, 'signed-in')
    assert.deepEqual(await actions(), { signIn: 1, failSignIn: 1, throttleSignIn: 1 })
    at(NOW_MS + 600_000)
    assert.equal((await attempt({})).kind, 'signed-in')
  })
}

test('thirty wrong passwords from one address lock nobody else behind it out', async (t) => {
  const { attempt, quick } = await begun(t, 'sqlite')
  await quick()
  for (let time = 0; time < 30; time++) await attempt({ email: 'ben@example.com' })
  for (let time = 0; time < 30; time++) await attempt({ email: `guess${time}@example.com` })
  assert.equal((await attempt({})).kind, 'signed-in')
})

test('guesses at many accounts from one network are bounded, and what succeeds is not counted', async (t) => {
  const { attempt, passwords, quick } = await begun(t, 'sqlite')
  await quick()
  const kinds = new Map<string, number>()
  for (let time = 0; time < 110; time++) {
    const { kind } = await attempt({ email: `guess${time}@example.com` })
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
  }
  assert.deepEqual(Object.fromEntries(kinds), { refused: 100, throttled: 10 })
  assert.equal((await attempt({})).kind, 'throttled')
  assert.equal((await attempt({ device: 'of anna' })).kind, 'signed-in')
  passwords.hash = async () => QUICK
  // All of a /64 is one network.
  for (let time = 0; time < 101; time++)
    assert.equal((await attempt({ address: `2001:db8::${time}` })).kind, 'signed-in')
})

test('attempts on a known device are bounded by themselves, whatever others guess', async (t) => {
  const { attempt, quick } = await begun(t, 'sqlite')
  await quick()
  const wrong = { password: 'wrong' }
  for (let time = 0; time < 110; time++)
    await attempt({ ...wrong, address: `192.0.2.${Math.floor(time / 10)}` })
  assert.equal((await attempt({})).kind, 'throttled')
  const device = 'laptop'
  for (let time = 0; time < 9; time++)
    assert.equal((await attempt({ ...wrong, device })).kind, 'refused', `${time}`)
  assert.equal((await attempt({ device })).kind, 'signed-in')
  assert.equal((await attempt({ ...wrong, device })).kind, 'refused')
  assert.equal((await attempt({ device })).kind, 'throttled')
  assert.equal((await attempt({ device: 'phone' })).kind, 'signed-in')
})

test('an account is tried a hundred times, wherever from', async (t) => {
  const { attempt, quick } = await begun(t, 'sqlite')
  await quick()
  let refused = 0
  for (let time = 0; time < 12 * 10; time++) {
    const { kind } = await attempt({ password: 'wrong', address: `192.0.2.${Math.floor(time / 10)}` })
    if (kind === 'refused') refused++
  }
  assert.equal(refused, 100)
  assert.equal((await attempt({ address: '192.0.2.99' })).kind, 'throttled')
  assert.equal((await attempt({ address: '192.0.2.99', email: 'ben@example.com' })).kind, 'refused')
})

test('a code is asked for beside the password, opens once, and a recovery code in its place', async (t) => {
  const { attempt, store, sealer, anna, at, quick } = await begun(t, 'sqlite')
  await quick()
  const codes = (await startCodes({ store, sealer }, anna, COMMAND_LINE, NOW_MS))!
  const step = Math.floor(NOW_MS / 30_000)
  const code = (number: number) => codeAt(codes.secret, number)
  const kindOf = async (more: Partial<Attempt>) => (await attempt(more)).kind
  assert.equal(await kindOf({}), 'refused')
  assert.equal(await kindOf({ code: code(step - 2) }), 'refused')
  assert.equal(await kindOf({ code: code(step), password: 'wrong' }), 'refused') // and is not used up by it
  assert.deepEqual(
    (
      await Promise.all(
        [1, 2, 3].map(() => kindOf({ code: ` ${code(step).slice(0, 3)} ${code(step).slice(3)}` })),
      )
    ).sort(),
    ['refused', 'refused', 'signed-in'],
  )
  assert.equal(await kindOf({ code: code(step - 1) }), 'refused') // older than one that was used
  assert.equal(await kindOf({ code: code(step + 1) }), 'signed-in')
  at(NOW_MS + 600_000)
  const recovery = codes.recoveryCodes[3]!
  assert.equal(await kindOf({ code: recovery.toUpperCase() }), 'signed-in')
  assert.equal(await kindOf({ code: recovery }), 'refused')
  assert.equal(await kindOf({ code: codes.recoveryCodes[4]! }), 'signed-in')
})

test('a hash of earlier parameters is made anew when its password comes, and for no other', async (t) => {
  const { attempt, store, quick } = await begun(t, 'sqlite')
  await quick()
  const hash = async () => (await store.users.byEmail('anna@example.com'))!.password!
  assert.equal((await attempt({ password: 'wrong' })).kind, 'refused')
  assert.match(await hash(), /m=256,/)
  assert.equal((await attempt({})).kind, 'signed-in')
  assert.match(await hash(), /m=65536,/)
  assert.equal((await attempt({})).kind, 'signed-in')
})

test('as much is done whether there is such a user or not: one password is hashed', async (t) => {
  const { attempt, passwords, store } = await begun(t, 'sqlite')
  const compared: (string | null)[] = []
  const isRight = passwords.isRight.bind(passwords)
  passwords.isRight = (text, stored) => {
    compared.push(stored)
    return isRight(text, stored)
  }
  const anna = (await store.users.byEmail('anna@example.com'))!.password
  for (const [email, stored] of [
    ['anna@example.com', anna],
    ['ben@example.com', null],
    ['x@example.com', null],
    ['no address', null],
    [`${'x'.repeat(1_000)}@example.com`, null],
  ] as const) {
    assert.equal((await attempt({ email, password: 'a phrase of other words' })).kind, 'refused')
    assert.deepEqual(compared.splice(0), [stored], email.slice(0, 20))
  }
})

test('nothing that is typed is in the audit log or in the log', async (t) => {
  const { attempt, store, said, anna } = await begun(t, 'sqlite')
  await attempt({ email: 'my password in the wrong place' })
  await attempt({ password: 'wrong password' })
  await attempt({ code: '123456' })
  await deleteUser(store, anna, COMMAND_LINE, NOW_MS)
  assert.equal((await attempt({})).kind, 'refused')
  const { items } = await store.audit.list({ page: 1, limit: 200 })
  const all = JSON.stringify(items) + said.join('')
  for (const word of ['password in', 'wrong password', '123456', PASSWORD, 'argon2'])
    assert.ok(!all.includes(word))
  assert.deepEqual(
    items
      .filter(({ action }) => action === 'signIn')
      .map(({ principal, subject, address }) => [principal, subject, address]),
    [[anna.id, anna.id, '192.0.2.1']],
  )
})

async function begun(t: Test, kind: DatabaseKind) {
  const url = await freshUrl(kind, t)
  const store = await openAt(t, url)
  const said: string[] = []
  const log = createLogTo('info', { write: (line) => said.push(line) })
  const sealer = new Sealer([], join(temporaryFolder(t), 'store.key'))
  const passwords = quickHasher()
  let nowMs = NOW_MS
  const on = (its: typeof store) => new SignIn({ store: its, sealer, log, passwords, nowMs: () => nowMs })
  const signIn = on(store)
  const user = (email: string, password: string | null) =>
    makeUser(store, passwords, { email, password, apps: '*', scopes: ['read'] }, COMMAND_LINE, NOW_MS)
  const anna = (await user('anna@example.com', PASSWORD))!
  await user('ben@example.com', null)
  return {
    ...{ store, sealer, passwords, said, anna },
    at: (ms: number) => {
      nowMs = ms
    },
    /** In another process. */
    one: async () => on(await openAt(t, url)),
    attempt: (more: Partial<Attempt>, its = signIn) => its.attempt({ ...ATTEMPT, ...more }),
    /** As if made when less was asked for. */
    quick: async () => {
      const { password } = (await store.users.byEmail(anna.email))!
      await store.users.rehash(anna.id, password!, QUICK)
      // Of nobody's no hash is quick: it stands for one here.
      const isRight = passwords.isRight.bind(passwords)
      passwords.isRight = async (text, stored) => (await isRight(text, stored ?? QUICK)) && stored !== null
    },
    actions: async () => {
      const { items } = await store.audit.list({ page: 1, limit: 200 })
      const counts: Record<string, number> = {}
      for (const { action } of items)
        if (action.endsWith('SignIn') || action === 'signIn') counts[action] = (counts[action] ?? 0) + 1
      return counts
    },
  }
}

const NOW_MS = 1_800_000_000_000
const PASSWORD = 'a phrase of some words'
const ATTEMPT: Attempt = {
  ...{
    email: 'anna@example.com',
    password: PASSWORD,
    code: '',
    device: null,
    address: '192.0.2.1',
    requestId: 'r1',
  },
}
/** Of the password, in a millisecond. */
const QUICK =
  '$argon2id$v=19$m=256,t=1,p=1$c29tZSBzYWx0LCAxNiBieQ$EBAGHZ5KDjIWyHDYDNJxWbYuTbxpbD5G4IRvpNYqc8U'
