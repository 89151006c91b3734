import assert from 'node:assert/strict'
import { test } from 'tap'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import type { NewGrant } from '../../src/store/people/gnap-grants.ts'
import type { GnapTokenRecord } from '../../src/store/people/gnap-tokens.ts'
import type { Store } from '../../src/store/store.ts'
import { freshUrl, openAt, type Owner } from '../store/databases.ts'

/** What keeping what GNAP gives out has to do in either database. */
export function gnapContract(kind: DatabaseKind): void {
  const fresh = async (t: Owner) => openAt(t, await freshUrl(kind, t))

  test(`${kind}: of those who use a proof at once one is the first, until it is forgotten`, async (t) => {
    const url = await freshUrl(kind, t)
    const stores = [await openAt(t, url), await openAt(t, url)]
    const first = await Promise.all(
      Array.from({ length: 20 }, (_, i) => stores[i % 2]!.replays.isFirst('a', 1_000)),
    )
    assert.equal(first.filter(Boolean).length, 1)
    const { replays } = stores[0]!
    assert.deepEqual([await replays.isFirst('b', 2_000), await replays.isFirst('A', 2_000)], [true, true])
    assert.equal(await replays.forget(1_000, 10), 1)
    assert.deepEqual([await replays.isFirst('a', 3_000), await replays.isFirst('b', 3_000)], [true, false])
    assert.equal(await replays.forget(9_000, 2), 2)
    assert.equal(await replays.forget(9_000, 2), 1)
  })

  test(`${kind}: a token comes back as it was given, by its hash and by who manages it`, async (t) => {
    const store = await fresh(t)
    await added(store, TOKEN, 'h1', 'm1')
    const other = { ...TOKEN, id: 'gtk_2', label: null, isBearer: true, isApproved: false, scopes: [] }
    await added(store, other, 'h2', 'm2')
    assert.deepEqual(
      [await store.gnapTokens.byHash('h1'), await store.gnapTokens.byHash('h2')],
      [TOKEN, other],
    )
    assert.deepEqual(await store.gnapTokens.managed('gtk_1', 'm1'), TOKEN)
    for (const [id, hash] of [
      ['gtk_1', 'm2'],
      ['gtk_2', 'm1'],
      ['gtk_3', 'm1'],
    ] as const)
      assert.equal(await store.gnapTokens.managed(id, hash), null)
    const many = [await store.gnapTokens.hasMany('tp', 2), await store.gnapTokens.hasMany('tp', 3)]
    assert.deepEqual([...many, await store.gnapTokens.hasMany('other', 1)], [true, false, false])
    await store.gnapTokens.revoke('gtk_1', 5)
    await store.gnapTokens.revoke('gtk_1', 6)
    assert.equal((await store.gnapTokens.byHash('h1'))?.revokedAtMs, 5)
    assert.equal(await store.gnapTokens.rotate(TOKEN, 'm1', { hash: 'h3', manageHash: 'm3' }), false)
    assert.equal(await store.gnapTokens.forget(TOKEN.endsAtMs - 1, 10), 0)
    assert.deepEqual(
      [await store.gnapTokens.forget(TOKEN.endsAtMs, 1), await store.gnapTokens.byHash('h0')],
      [1, null],
    )
  })

  test(`${kind}: approved grants are found and revoked by their approver and by their key`, async (t) => {
    const store = await fresh(t)
    const by = (name: string) => ({ by: name, atMs: 7 })
    await added(store, TOKEN, 'h1', 'm1')
    await added(store, { ...TOKEN, id: 'gtk_2', thumbprint: 'tp2', endsAtMs: 3_000 }, 'h2', 'm2')
    await added(store, { ...TOKEN, id: 'gtk_3', approved: by('usr_2') }, 'h3', 'm3')
    await added(store, { ...TOKEN, id: 'gtk_4', approved: null }, 'h4', 'm4')
    const ids = async (nowMs: number, most = 9) =>
      (await store.gnapTokens.approvedBy('usr_1', nowMs, most)).map(({ id }) => id)
    assert.deepEqual(
      [await ids(0), await ids(0, 1), await ids(2_000)],
      [['gtk_2', 'gtk_1'], ['gtk_2'], ['gtk_2']],
    )
    const revoke = () => store.transaction((q) => store.gnapTokens.revokeApproved('usr_1', 'tp', 5, q))
    assert.deepEqual([await revoke(), await revoke(), await ids(0)], [1, 0, ['gtk_2']])
    assert.equal((await store.gnapTokens.byHash('h3'))?.revokedAtMs, null)
  })

  test(`${kind}: of those who renew a token at once one does`, async (t) => {
    const store = await fresh(t)
    await added(store, TOKEN, 'h1', 'm1')
    const next = { ...TOKEN, expiresAtMs: 5_000, endsAtMs: 6_000 }
    const renewed = await Promise.all(
      [2, 3, 4].map((i) => store.gnapTokens.rotate(next, 'm1', { hash: `h${i}`, manageHash: `m${i}` })),
    )
    assert.equal(renewed.filter(Boolean).length, 1)
    assert.equal(await store.gnapTokens.byHash('h1'), null)
    const winner = renewed.indexOf(true) + 2
    assert.deepEqual(await store.gnapTokens.byHash(`h${winner}`), next)
  })

  test(`${kind}: grants that are added at once by several processes stay within the limit`, async (t) => {
    const url = await freshUrl(kind, t)
    const stores = [await openAt(t, url), await openAt(t, url), await openAt(t, url)]
    for (let limit = 1; limit <= 5; limit++) {
      const added = await Promise.all(
        stores.map(({ gnapGrants }, i) =>
          gnapGrants.add({ ...GRANT, id: `grt_${limit}_${i}`, interactHash: `i${limit}_${i}` }, limit),
        ),
      )
      assert.equal(added.filter(Boolean).length, 1)
    }
  })

  test(`${kind}: a grant waits, is decided once, and finished once`, async (t) => {
    const store = await fresh(t)
    const { gnapGrants: grants } = store
    assert.equal(await grants.add(GRANT, 2), true)
    assert.equal(
      await grants.add({ ...GRANT, id: 'grt_2', interactHash: 'i2', finish: null, createdAtMs: 2 }, 2),
      true,
    )
    assert.equal(await grants.add({ ...GRANT, id: 'grt_3', interactHash: 'i3' }, 2), false)
    const { interactHash, continueHash, ...given } = GRANT
    const waiting = { ...given, state: 'waiting', referenceHash: null, decided: null }
    assert.deepEqual(
      [
        await grants.byId('grt_1'),
        await grants.byInteractHash(interactHash),
        await grants.continued('grt_1', continueHash),
      ],
      [waiting, waiting, waiting],
    )
    assert.deepEqual([await grants.continued('grt_1', 'c2'), await grants.byInteractHash('i3')], [null, null])
    const listed = await grants.list('waiting', { page: 1, limit: 1 }, 0)
    assert.deepEqual([listed.total, listed.items[0]?.id], [2, 'grt_2'])
    assert.equal((await grants.list('waiting', { page: 1, limit: 9 }, GRANT.expiresAtMs)).total, 0)
    const decide = (state: 'approved' | 'denied', scopes: string[]) =>
      store.transaction((queries) => grants.decide('grt_1', state, scopes, { by: 'usr_1', atMs: 7 }, queries))
    await grants.setReference('grt_1', 'too early')
    assert.deepEqual([await decide('approved', ['read']), await decide('denied', [])], [true, false])
    await grants.setReference('grt_1', 'r1')
    assert.deepEqual(await grants.byId('grt_1'), {
      ...waiting,
      state: 'approved',
      scopes: ['read'],
      referenceHash: 'r1',
      decided: { by: 'usr_1', atMs: 7 },
    })
    assert.equal((await grants.list('approved', { page: 1, limit: 9 }, 0)).total, 1)
    assert.equal((await grants.list('waiting', { page: 1, limit: 9 }, 0)).total, 1)
    assert.equal(await grants.renew('grt_1', 'c1', 'c2', 7), true)
    assert.equal(await grants.renew('grt_1', 'c1', 'c3', 8), false)
    assert.equal((await grants.continued('grt_1', 'c2'))?.nextAtMs, 7)
    assert.deepEqual([await grants.finish('grt_1', 'c1'), await grants.finish('grt_1', 'c2')], [false, true])
    assert.deepEqual(
      [await grants.finish('grt_1', 'c2'), await grants.renew('grt_1', 'c2', 'c4', 9)],
      [false, false],
    )
    assert.equal((await grants.byId('grt_1'))?.state, 'finished')
    assert.equal(await grants.forget(GRANT.expiresAtMs - 1, 9), 0)
    assert.equal(await grants.forget(GRANT.expiresAtMs, 1), 1)
    assert.equal(await grants.forget(GRANT.expiresAtMs, 9), 1)
  })
}

function added(store: Store, token: GnapTokenRecord, hash: string, manageHash: string): Promise<void> {
  return store.transaction((queries) => store.gnapTokens.add(token, { hash, manageHash }, queries))
}

const JWK = { kty: 'OKP', crv: 'Ed25519', x: 'x', kid: 'ä "' }
const TOKEN: GnapTokenRecord = {
  ...{ id: 'gtk_1', thumbprint: 'tp', jwk: JWK, name: 'robot', label: 'mine', scopes: ['read', 'detect'] },
  ...{
    isBearer: false,
    isApproved: true,
    approved: { by: 'usr_1', atMs: 7 },
    expiresAtMs: 1_000,
    endsAtMs: 2_000,
    revokedAtMs: null,
  },
}
const GRANT: NewGrant = {
  ...{ id: 'grt_1', thumbprint: 'tp', jwk: JWK, display: { name: 'robot', uri: null } },
  wanted: { isList: true, tokens: [{ label: 'a', actions: ['read', 'detect'], isBearer: false }] },
  finish: { uri: 'https://client.example/', nonce: 'n', hashMethod: 'sha-256', serverNonce: 's' },
  ...{ scopes: ['read', 'detect'], nextAtMs: 5, createdAtMs: 1, expiresAtMs: 3_000 },
  ...{ interactHash: 'i1', continueHash: 'c1' },
}
