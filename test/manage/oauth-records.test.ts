import assert from 'node:assert/strict'
import { join } from 'node:path'
import { sql } from 'kysely'
import { errors } from 'oidc-provider'
import { test } from 'tap'
import { createLogTo } from '../../src/shared/log.ts'
import { Denials } from '../../src/manage/auth/oauth/denials.ts'
import { grantDigest, Records } from '../../src/manage/auth/oauth/records.ts'
import { TokenSigningKeys } from '../../src/manage/auth/oauth/signing-keys.ts'
import { Sealer } from '../../src/manage/auth/sealer.ts'
import { Secret } from '../../src/shared/secret.ts'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import { freshUrl, KINDS, openAt, type Owner } from '../store/databases.ts'

for (const kind of KINDS) {
  test(`${kind}: what oidc-provider keeps comes back by each of its names, until it is over`, async (t) => {
    const { adapter, clock } = await keeping(kind, t)
    const session = adapter('Session')
    const payload = { jti: 'the-id', uid: 'the-uid', userCode: 'the-code', kind: 'Session', exp: 7 }
    await session.upsert('the-id', payload, 60)
    assert.deepEqual(await session.find('the-id'), payload)
    assert.deepEqual(await session.findByUid('the-uid'), payload)
    assert.deepEqual(await session.findByUserCode('the-code'), payload)
    assert.equal(await adapter('Interaction').find('the-id'), undefined)
    assert.equal(await adapter('Interaction').findByUid('the-uid'), undefined)
    await session.upsert('the-id', { ...payload, uid: 'another' }, 60)
    assert.equal(await session.findByUid('the-uid'), undefined)
    assert.equal((await session.findByUid('another'))?.uid, 'another')
    clock.nowMs += 60_000 + 14_000
    assert.notEqual(await session.find('the-id'), undefined)
    clock.nowMs += 2_000
    assert.equal(await session.find('the-id'), undefined)
    await session.upsert('the-id', payload, 60)
    await session.destroy('the-id')
    assert.equal(await session.find('the-id'), undefined)
  })

  test(`${kind}: of ten who use one code one gets through, and all that came of it is over`, async (t) => {
    const { adapter, denials } = await keeping(kind, t)
    const codes = adapter('AuthorizationCode')
    await adapter('Grant').upsert('grant', { jti: 'grant', clientId: 'cli_1' }, 600)
    await adapter('RefreshToken').upsert('refresh', { jti: 'refresh', grantId: 'grant' }, 600)
    await codes.upsert('code', { jti: 'code', grantId: 'grant', clientId: 'cli_1' }, 60)
    const tries = await Promise.allSettled(Array.from({ length: 10 }, () => codes.consume('code')))
    assert.equal(tries.filter(({ status }) => status === 'fulfilled').length, 1)
    for (const each of tries)
      if (each.status === 'rejected') assert.ok(each.reason instanceof errors.InvalidGrant)
    assert.equal(await adapter('Grant').find('grant'), undefined)
    assert.equal(await adapter('RefreshToken').find('refresh'), undefined)
    assert.ok(denials.has('grant', grantDigest('grant')))
  })

  test(`${kind}: what was used says so; a grant that is taken back takes along what came of it`, async (t) => {
    const { adapter, clock, denials } = await keeping(kind, t)
    const tokens = adapter('RefreshToken')
    await tokens.upsert('one', { jti: 'one', grantId: 'grant' }, 600)
    await tokens.upsert('two', { jti: 'two', grantId: 'other' }, 600)
    await tokens.consume('one')
    assert.equal((await tokens.find('one'))?.consumed, Math.floor(clock.nowMs / 1000))
    await tokens.revokeByGrantId('grant')
    assert.deepEqual([await tokens.find('one'), (await tokens.find('two'))?.jti], [undefined, 'two'])
    await adapter('Grant').upsert('other', { jti: 'other' }, 600)
    await adapter('Grant').destroy('other')
    assert.deepEqual([await tokens.find('two'), await adapter('Grant').find('other')], [undefined, undefined])
    assert.ok(denials.has('grant', grantDigest('other')) && !denials.has('grant', grantDigest('third')))
  })

  test(`${kind}: what must come once comes once, and again when it is over`, async (t) => {
    const { adapter, clock } = await keeping(kind, t)
    const proofs = adapter('ReplayDetection')
    const put = () => proofs.upsert('proof', { jti: 'proof', iss: 'cli_1' }, 60)
    const tries = await Promise.allSettled([put(), put(), put()])
    assert.equal(tries.filter(({ status }) => status === 'fulfilled').length, 1)
    clock.nowMs += 76_000
    await put()
    await assert.rejects(put(), errors.InvalidGrant)
  })

  test(`${kind}: a copy of the database has no name and no word of what is kept`, async (t) => {
    const { adapter, url, store, keys } = await keeping(kind, t)
    const secret = 'a-credential-nobody-may-find'
    const payload = {
      jti: secret,
      uid: `${secret}-uid`,
      userCode: `${secret}-code`,
      grantId: `${secret}-grant`,
    }
    await adapter('RefreshToken').upsert(secret, { ...payload, nonce: secret }, 600)
    const { signer } = await keys.current()
    const { db, close } = await openDatabase(url, null, async () => undefined)
    const rows = JSON.stringify([
      (await sql`select * from oauth_records`.execute(db)).rows,
      (await sql`select * from oauth_keys`.execute(db)).rows,
    ])
    await close()
    assert.ok(rows.includes('RefreshToken') && rows.includes(signer.kid))
    assert.ok(!rows.includes('nobody-may-find') && !rows.includes(signer.privateJwk.d!))
    // Nor is one row of use in the place of another.
    const stranger = new Sealer([new Secret('another key, of another installation')], '')
    const other = new Records('RefreshToken', {
      store,
      sealer: stranger,
      denials: new Denials(store, Date.now),
      nowMs: Date.now,
    })
    await assert.rejects(other.find(secret), { code: 'SEAL_KEY_WRONG' })
  })

  test(`${kind}: what is over is forgotten, a slice at a time`, async (t) => {
    const { adapter, clock, store, denials } = await keeping(kind, t)
    for (const id of ['a', 'b', 'c']) await adapter('Session').upsert(id, { jti: id }, 10)
    await adapter('Session').upsert('d', { jti: 'd' }, 1_000)
    for (const id of ['a', 'b', 'c']) await denials.add('token', id, undefined, clock.nowMs + 10_000)
    await denials.add('token', 'd')
    clock.nowMs += 60_000
    const { nowMs } = clock
    assert.deepEqual(
      [await store.oauthRecords.forget(nowMs, 2), await store.oauthRecords.forget(nowMs, 2)],
      [2, 1],
    )
    assert.deepEqual(
      [await store.oauthDenials.forget(nowMs, 2), await store.oauthDenials.forget(nowMs, 2)],
      [2, 1],
    )
    assert.equal((await adapter('Session').find('d'))?.jti, 'd')
    assert.deepEqual(
      (await store.oauthDenials.since(0, nowMs)).map(({ id }) => id),
      ['d'],
    )
  })

  test(`${kind}: what one process denies another knows within a second, and nobody is told yes when it cannot`, async (t) => {
    const { denials, url, clock } = await keeping(kind, t)
    const otherStore = await openAt(t, url)
    const other = new Denials(otherStore, () => clock.nowMs)
    assert.equal(other.isFresh(clock.nowMs), false)
    await other.read()
    assert.equal(other.isFresh(clock.nowMs), true)
    await denials.add('client', 'cli_1')
    assert.ok(denials.has('client', 'cli_1') && !other.has('client', 'cli_1'))
    clock.nowMs += 800
    assert.equal(other.isFresh(clock.nowMs), false)
    await other.read()
    assert.ok(other.has('client', 'cli_1') && !other.has('person', 'cli_1'))
    // A clock that runs behind by half a minute.
    clock.nowMs -= 30_000
    await denials.add('token', 'late')
    clock.nowMs += 31_000
    await other.read()
    assert.ok(other.has('token', 'late'))
    clock.nowMs += 800_000
    await other.read()
    assert.ok(!other.has('client', 'cli_1'))
    // A backup that took the place of it all is read from its beginning.
    await denials.add('client', 'cli_2')
    clock.nowMs += 300_000
    await other.read()
    other.forget()
    assert.ok(!other.isFresh(clock.nowMs) && !other.has('client', 'cli_2'))
    await other.read()
    assert.ok(other.has('client', 'cli_2'))
    const broken = Object.assign(Object.create(otherStore), {
      oauthDenials: { since: () => Promise.reject(new Error('away')) },
    })
    await assert.rejects(new Denials(broken, () => clock.nowMs).read(), /away/)
  })

  test(`${kind}: processes sign with one key, which is followed by another that was published before`, async (t) => {
    const { keys, clock, url, sealer } = await keeping(kind, t)
    const other = keysOn(await openAt(t, url), sealer, clock)
    const [one, two] = await Promise.all([keys.current(), other.current()])
    assert.equal(one.signer.kid, two.signer.kid)
    const first = one.signer.kid
    const kids = async () => (await keys.current()).published.map(({ kid }) => kid)
    clock.nowMs += 9 * DAY_MS - 1
    await keys.keep()
    assert.deepEqual(await kids(), [first])
    clock.nowMs += 1
    await Promise.all([keys.keep(), other.keep()])
    const [second, ...others] = await kids()
    assert.ok(second !== first && others.length === 1)
    assert.equal((await keys.current()).signer.kid, first)
    clock.nowMs += DAY_MS
    assert.equal((await other.current()).signer.kid, second)
    assert.deepEqual(await kids(), [second, first])
    assert.notEqual(await keys.byKid(first), null)
    clock.nowMs += 4_200_000 - 1
    await keys.keep()
    assert.deepEqual(await kids(), [second, first])
    clock.nowMs += 1
    await keys.keep()
    assert.deepEqual(await kids(), [second])
    assert.equal(await keys.byKid(first), null)
  })
}

for (const kind of KINDS)
  test(`${kind}: clients that came by themselves and that nobody consented to are forgotten`, async (t) => {
    const { adapter, store } = await keeping(kind, t)
    const client = (id: string, origin: string, createdAtMs: number) => ({
      ...{ id, name: id, secretHash: null, authMethod: 'none', grantTypes: ['authorization_code'] },
      ...{
        redirectUris: [],
        apps: '*' as const,
        scopes: ['read'],
        jwks: null,
        plan: 'standard',
        origin,
        createdAtMs,
      },
    })
    for (const [id, origin, createdAtMs] of [
      ['cli_old', 'registration', 1],
      ['cli_used', 'registration', 1],
      ['cli_new', 'registration', 9],
      ['cli_made', 'administrator', 1],
    ] as const)
      await store.transaction((queries) => store.oauthClients.add(client(id, origin, createdAtMs), queries))
    await adapter('Grant').upsert('grant', { jti: 'grant', clientId: 'cli_used' }, 600)
    assert.deepEqual(await store.oauthClients.byId('cli_old'), client('cli_old', 'registration', 1))
    assert.equal(await store.oauthClients.forgetUnused(9, 10), 1)
    const { items } = await store.oauthClients.list({ page: 1, limit: 10 }, '*')
    assert.deepEqual(
      items.map(({ id }) => id),
      ['cli_new', 'cli_used', 'cli_made'],
    )
    const counted = store.transaction((queries) => store.oauthClients.countOf('registration', queries))
    assert.equal(await counted, 2)
  })

test('a key that comes after a long stop signs as soon as all have read it; one that is wanted now signs now', async (t) => {
  const { keys, clock, store } = await keeping('sqlite', t)
  const first = (await keys.current()).signer.kid
  clock.nowMs += 100 * DAY_MS
  await keys.keep()
  assert.equal((await keys.current()).signer.kid, first)
  clock.nowMs += 60_000
  const second = (await keys.current()).signer.kid
  assert.notEqual(second, first)
  const rotated = await store.transaction((queries) => keys.rotate(false, queries))
  keys.forget()
  assert.deepEqual(rotated.dropped, [])
  assert.equal((await keys.current()).signer.kid, rotated.key.kid)
  assert.equal((await keys.current()).published.length, 3)
  const { dropped } = await store.transaction((queries) => keys.rotate(true, queries))
  keys.forget()
  assert.deepEqual(new Set(dropped), new Set([first, second, rotated.key.kid]))
  assert.equal((await keys.current()).published.length, 1)
})

const DAY_MS = 86_400_000

async function keeping(kind: DatabaseKind, t: Owner) {
  const url = await freshUrl(kind, t)
  const store = await openAt(t, url)
  const clock = { nowMs: 1_800_000_000_000 }
  const nowMs = () => clock.nowMs
  const sealer = new Sealer([new Secret('the key that is not in the database')], join('nowhere', 'store.key'))
  const denials = new Denials(store, nowMs)
  const adapter = (name: string) => new Records(name, { store, sealer, denials, nowMs })
  return { url, store, clock, sealer, denials, adapter, keys: keysOn(store, sealer, clock) }
}

function keysOn(
  store: Awaited<ReturnType<typeof openAt>>,
  sealer: Sealer,
  clock: { nowMs: number },
): TokenSigningKeys {
  const log = createLogTo('silent', { write: () => undefined })
  return new TokenSigningKeys(store, sealer, log, 10 * DAY_MS, () => clock.nowMs)
}
