import assert from 'node:assert/strict'
import { test } from 'tap'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import type { PasskeyRecord } from '../../src/store/people/passkeys.ts'
import { freshUrl, openAt } from '../store/databases.ts'

/** What keeping passkeys has to do in either database. */
export function passkeysContract(kind: DatabaseKind): void {
  test(`${kind}: a passkey comes back as it was given, is of one person, and goes with them`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    const { passkeys, users } = store
    const run = store.transaction.bind(store)
    for (const id of ['usr_1', 'usr_2'])
      await run((queries) =>
        users.add({ id, email: id, password: null, apps: '*', scopes: [], createdAtMs: 1 }, queries),
      )
    const add = (passkey: PasskeyRecord) => run((queries) => passkeys.add(passkey, queries))
    assert.deepEqual([await add(PASSKEY), await add({ ...PASSKEY, userId: 'usr_2' })], [true, false])
    const other = { ...PASSKEY, id: 'b', createdAtMs: 1, usedAtMs: 9 }
    assert.equal(await add(other), true)
    assert.deepEqual([await passkeys.byId('a'), await passkeys.byId('c')], [PASSKEY, null])
    assert.deepEqual(await passkeys.ofUser('usr_1'), [other, PASSKEY])
    const remove = (user: string, id: string) => run((queries) => passkeys.remove(user, id, queries))
    assert.deepEqual([await remove('usr_2', 'a'), await remove('usr_1', 'a')], [false, true])
    await add(PASSKEY)
    await run((queries) => passkeys.removeAll('usr_1', queries))
    assert.deepEqual(await passkeys.ofUser('usr_1'), [])
    await add(PASSKEY)
    await run((queries) => users.remove('usr_1', queries))
    assert.equal(await passkeys.byId('a'), null)
  })

  test(`${kind}: of several who use a passkey at the same count one does, and none goes back`, async (t) => {
    const url = await freshUrl(kind, t)
    const [one, other] = [await openAt(t, url), await openAt(t, url)]
    const user = { id: 'usr_1', email: 'a@b', password: null, apps: '*' as const, scopes: [], createdAtMs: 1 }
    await one.transaction(async (queries) => {
      await one.users.add(user, queries)
      await one.passkeys.add(PASSKEY, queries)
    })
    // One that does not count is used again and again, until it counts.
    assert.deepEqual([await one.passkeys.use('a', 0, 5), await one.passkeys.use('a', 0, 6)], [true, true])
    const used = await Promise.all(
      [one, other, one].map((store) => store.passkeys.use('a', 4_294_967_295, 7)),
    )
    assert.deepEqual(used.filter(Boolean), [true])
    assert.deepEqual([await one.passkeys.use('a', 0, 8), await one.passkeys.use('a', 3, 8)], [false, false])
    assert.deepEqual(await one.passkeys.byId('a'), { ...PASSKEY, counter: 4_294_967_295, usedAtMs: 7 })
    assert.equal(await one.passkeys.use('b', 1, 8), false)
  })
}

const PASSKEY: PasskeyRecord = {
  ...{ id: 'a', userId: 'usr_1', name: 'ä "', publicKey: 'pQEC', counter: 0, createdAtMs: 2 },
  usedAtMs: null,
}
