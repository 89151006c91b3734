import assert from 'node:assert/strict'
import { test } from 'tap'
import type { AppList } from '../../src/apps/app-scope.ts'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import type { Store } from '../../src/store/store.ts'
import type { NewUser } from '../../src/store/people/users.ts'
import { freshUrl, openAt } from '../store/databases.ts'

/** What keeping people who sign in has to do in either database. */
export function usersContract(kind: DatabaseKind): void {
  test(`${kind}: a user comes back as they were given, once for each address, and goes`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    const added = await Promise.all(
      [1, 2, 3].map((number) => add(store, { ...user(number), email: 'same@x' })),
    )
    assert.deepEqual(added.filter(Boolean), [true])
    assert.equal(await add(store, { ...user(4), password: null }), true)
    const found = await store.users.byEmail('same@x')
    assert.deepEqual(found, {
      ...{ id: found?.id, email: 'same@x', scopes: ['read'], createdAtMs: found?.createdAtMs },
      apps: '*',
      ...{
        hasPassword: true,
        hasCodes: false,
        signedInSinceMs: 0,
        isDisabled: false,
        password: 'hash',
        codes: null,
      },
      openid: null,
    })
    assert.equal((await store.users.byId('usr_4'))?.hasPassword, false)
    assert.ok(!JSON.stringify(await store.users.byId(found!.id)).includes('"hash"'))
    const { items, total } = await store.users.list({ page: 1, limit: 1 }, '*')
    assert.deepEqual([items.map(({ id }) => id), total], [['usr_4'], 2])
    const remove = (id: string) => store.transaction((queries) => store.users.remove(id, queries))
    assert.deepEqual([await remove('usr_4'), await remove('usr_4')], [true, false])
    assert.deepEqual([await store.users.byId('usr_4'), await store.users.byEmail('4@x')], [null, null])
  })

  test(`${kind}: a list within some apps has only users whose apps are all among these`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    const given: readonly AppList[] = ['*', [], ['shop'], ['blog', 'shop'], ["it's", '%'], ['shopping']]
    for (const [number, apps] of given.entries()) await add(store, { ...user(number), apps })
    const listed = async (...apps: readonly string[]) => {
      const { items, total } = await store.users.list({ page: 1, limit: 10 }, new Set(apps))
      assert.equal(total, items.length)
      const { items: some } = await store.users.list({ after: null, limit: 10 }, new Set(apps))
      assert.deepEqual(some, items)
      return items.map((each) => each.apps).toReversed()
    }
    assert.deepEqual(await listed(), [])
    assert.deepEqual(await listed('*'), [])
    assert.deepEqual(await listed('shop'), [['shop']])
    assert.deepEqual(await listed('blog'), [])
    assert.deepEqual(await listed('shop', 'blog', 'wiki'), [['shop'], ['blog', 'shop']])
    assert.deepEqual(await listed('%', "it's"), [["it's", '%']])
    assert.equal((await store.users.list({ page: 1, limit: 10 }, '*')).total, given.length)
    await store.transaction((queries) => store.users.setApps('usr_0', ['shop'], queries))
    assert.deepEqual(await listed('shop'), [['shop'], ['shop']])
  })

  test(`${kind}: a password is changed, and hashed anew only if it is still the same`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    await add(store, user(1))
    const proofs = async () => (await store.users.byEmail('1@x'))!
    await store.users.rehash('usr_1', 'hash', 'hash 2')
    await store.users.rehash('usr_1', 'hash', 'hash 3')
    assert.deepEqual([(await proofs()).password, (await proofs()).signedInSinceMs], ['hash 2', 0])
    const set = (id: string) =>
      store.transaction((queries) => store.users.setPassword(id, 'new', 2_000_000_000_007, queries))
    assert.deepEqual([await set('usr_1'), await set('usr_9')], [true, false])
    const { password, signedInSinceMs } = await proofs()
    assert.deepEqual([password, signedInSinceMs], ['new', 2_000_000_000_007])
  })

  test(`${kind}: an account elsewhere is of one user, and a user has one`, async (t) => {
    const url = await freshUrl(kind, t)
    const [one, other] = [await openAt(t, url), await openAt(t, url)]
    for (const number of [1, 2]) await add(one, user(number))
    const anna = { issuer: 'https://id.example/', subject: 'anna' }
    const bind = (store: Store, id: string, openid: typeof anna) =>
      store.transaction((queries) => store.users.bind(id, openid, queries)).catch(() => false)
    assert.equal(await one.users.byOpenid(anna), null)
    const bound = await Promise.all([bind(one, 'usr_1', anna), bind(other, 'usr_2', anna)])
    assert.deepEqual(bound.filter(Boolean), [true])
    const found = (await one.users.byOpenid(anna))!
    assert.deepEqual(found.openid, anna)
    const [id, free] = found.id === 'usr_1' ? ['usr_1', 'usr_2'] : ['usr_2', 'usr_1']
    assert.equal(await bind(one, id, { ...anna, subject: 'another' }), false)
    assert.equal(await bind(one, free, anna), false)
    assert.equal(await bind(one, 'usr_9', { ...anna, subject: 'another' }), false)
    assert.equal(await one.users.byOpenid({ ...anna, issuer: 'https://other.example/' }), null)
    // The same name at another issuer is another person.
    assert.equal(await bind(one, free, { ...anna, issuer: 'https://other.example/' }), true)
    const unbind = (id: string) => one.transaction((queries) => one.users.unbind(id, 7, queries))
    assert.deepEqual([await unbind(id), await unbind('usr_9')], [true, false])
    const after = (await one.users.byId(id))!
    assert.deepEqual([after.openid, after.signedInSinceMs], [null, 7])
    assert.equal(await bind(one, id, anna), true)
  })

  test(`${kind}: scopes, being disabled and signed out are changed one by one`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    await add(store, user(1))
    const { users } = store
    const before = (await users.byId('usr_1'))!
    const isThere = await store.transaction(async (queries) => [
      await users.setScopes('usr_1', ['admin', 'mcp'], queries),
      await users.setDisabled('usr_1', 9, queries),
      await users.signOut('usr_1', 2_000_000_000_007, queries),
      await users.setScopes('usr_9', [], queries),
      await users.setDisabled('usr_9', 9, queries),
      await users.signOut('usr_9', 9, queries),
    ])
    assert.deepEqual(isThere, [true, true, true, false, false, false])
    const after = {
      ...before,
      scopes: ['admin', 'mcp'],
      isDisabled: true,
      signedInSinceMs: 2_000_000_000_007,
    }
    assert.deepEqual(await users.byId('usr_1'), after)
    await store.transaction((queries) => users.setDisabled('usr_1', null, queries))
    assert.deepEqual(await users.byId('usr_1'), { ...after, isDisabled: false })
  })

  test(`${kind}: of several who use a code at once one does, and never an older one after it`, async (t) => {
    const url = await freshUrl(kind, t)
    const [one, other] = [await openAt(t, url), await openAt(t, url)]
    await add(one, user(1))
    const used = await Promise.all([one, other, one].map((store) => store.users.useCode('usr_1', 7)))
    assert.deepEqual(used.filter(Boolean), [true])
    assert.deepEqual(
      [
        await one.users.useCode('usr_1', 6),
        await one.users.useCode('usr_1', 8),
        await one.users.useCode('x', 9),
      ],
      [false, true, false],
    )
    const setCodes = (id: string, sealed: string | null, hashes: readonly string[]) =>
      one.transaction((queries) => one.users.setCodes(id, sealed, hashes, queries))
    assert.equal(await setCodes('usr_9', 'sealed', ['a']), false)
    assert.equal(await setCodes('usr_1', 'sealed', ['a', 'b']), true)
    assert.deepEqual(
      [(await one.users.byEmail('1@x'))?.codes, (await one.users.byId('usr_1'))?.hasCodes],
      ['sealed', true],
    )
    // New ones begin anew.
    assert.equal(await one.users.useCode('usr_1', 7), true)
    const recovered = await Promise.all(
      [one, other, one].map((store) => store.users.useRecoveryCode('usr_1', 'a')),
    )
    assert.deepEqual(recovered.filter(Boolean), [true])
    assert.equal(await one.users.useRecoveryCode('usr_2', 'b'), false)
    assert.equal(await setCodes('usr_1', 'sealed 2', ['c']), true)
    assert.equal(await one.users.useRecoveryCode('usr_1', 'b'), false)
    assert.equal(await setCodes('usr_1', null, []), true)
    assert.equal(await one.users.useRecoveryCode('usr_1', 'c'), false)
    // They are deleted with their owner.
    assert.equal(await setCodes('usr_1', 'sealed', ['d']), true)
    await one.transaction((queries) => one.users.remove('usr_1', queries))
    await add(one, user(1))
    assert.equal(await one.users.useRecoveryCode('usr_1', 'd'), false)
  })
}

function add(store: Store, wanted: NewUser): Promise<boolean> {
  return store.transaction((queries) => store.users.add(wanted, queries))
}

function user(number: number): NewUser {
  const times = { createdAtMs: 1_800_000_000_000 + number }
  return {
    id: `usr_${number}`,
    email: `${number}@x`,
    password: 'hash',
    apps: '*',
    scopes: ['read'],
    ...times,
  }
}
