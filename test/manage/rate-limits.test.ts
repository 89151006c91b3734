import assert from 'node:assert/strict'
import { test } from 'tap'
import { Fault } from '../../src/shared/fault.ts'
import { createLogTo } from '../../src/shared/log.ts'
import type { Plan, Principal, Scope } from '../../src/manage/http/access/principal.ts'
import type { AppQuota } from '../../src/apps/app.ts'
import { RateLimits } from '../../src/manage/limits/rate-limits.ts'
import { Store } from '../../src/store/store.ts'
import { rateLimitsContract } from '../contract/rate-limits.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { until } from '../until.ts'
import { TestManagement } from './management.ts'

for (const kind of KINDS) rateLimitsContract(kind)

const SILENT = createLogTo('silent', { write: () => undefined })
const NO_QUOTAS = () => null
const LIMITS = { freePerDay: 3, standardPerHour: 5 }

test('every answer to who is known says what is left, and the last one to wait', async (t) => {
  const manage = await TestManagement.start(t, { rateLimits: { ...LIMITS, freePerDay: 4 } })
  const authorization = `Bearer ${await manage.key({ scopes: ['read'], plan: 'free' })}`
  const ask = (method: string, path: string) => manage.ask(method, path, undefined, { authorization })
  for (const [method, path, status, left] of [
    ['GET', '/v1/keys', 403, 3],
    ['GET', '/v1/nothing', 404, 2],
    ['PUT', '/v1/keys', 405, 1],
    ['HEAD', '/v1/nothing', 404, 0],
  ] as const) {
    const { status: given, headers } = await ask(method, path)
    assert.equal(given, status)
    assert.equal(headers.get('ratelimit-policy'), '"free";q=4;w=86400')
    assert.match(headers.get('ratelimit') ?? '', new RegExp(`^"free";r=${left};t=8(?:6400|639\\d)$`))
  }
  for (const path of ['/v1/keys', '/v1/nothing']) {
    const { status, headers, body } = await ask('GET', path)
    assert.deepEqual([status, body.code], [429, 'rate_limited'], 'before 403 and 404')
    const [, seconds] = /^"free";r=0;t=(\d+)$/.exec(headers.get('ratelimit') ?? '') ?? []
    assert.equal(headers.get('retry-after'), seconds)
  }
  const unknown = await manage.ask('GET', '/v1/keys', undefined, { authorization: 'Bearer x' })
  assert.deepEqual([unknown.status, unknown.headers.get('ratelimit')], [401, null])
  const admin = await manage.ask('GET', '/v1/keys')
  assert.equal(admin.headers.get('ratelimit'), '"unlimited";r=999999999999999;t=3600')
})

for (const kind of KINDS) {
  test(`${kind}: each key has its own, and each plan its limit`, async (t) => {
    const limits = await RateLimits.open(await openAt(t, await freshUrl(kind, t)), LIMITS, NO_QUOTAS, SILENT)
    assert.deepEqual(await asked(limits, 'one', 'free', 5), [false, false, false, true, true])
    assert.deepEqual(await asked(limits, 'two', 'free', 1), [false])
    assert.deepEqual(await asked(limits, 'one', 'standard', 6), [false, false, false, false, false, true])
    assert.deepEqual(await asked(limits, 'one', 'unlimited', 1), [false])
  })

  test(`${kind}: those who may do nothing are counted together, however many they say to be`, async (t) => {
    const limits = await RateLimits.open(await openAt(t, await freshUrl(kind, t)), LIMITS, NO_QUOTAS, SILENT)
    const answers = []
    for (const id of ['a', 'b', 'c', 'd']) answers.push(...(await asked(limits, id, 'free', 1, [])))
    assert.deepEqual(answers, [false, false, false, true])
    assert.deepEqual(await asked(limits, 'a', 'free', 1), [false])
  })

  test(`${kind}: a restart forgets nothing`, async (t) => {
    const url = await freshUrl(kind, t)
    for (const exceeded of [[false, false], [false, true], [true]]) {
      const store = await Store.open(url)
      const limits = await RateLimits.open(store, LIMITS, NO_QUOTAS, SILENT)
      assert.deepEqual(await asked(limits, 'one', 'free', exceeded.length), exceeded)
      await limits.write()
      await store.close()
    }
  })
}

test('sqlite: counting writes nothing', async (t) => {
  const url = await freshUrl('sqlite', t)
  const store = await openAt(t, url)
  const limits = await RateLimits.open(store, LIMITS, NO_QUOTAS, SILENT)
  await asked(limits, 'one', 'free', 2)
  assert.deepEqual(await store.rateLimits.current(Date.now()), [])
  await limits.write()
  const after = await RateLimits.open(await openAt(t, url), LIMITS, NO_QUOTAS, SILENT)
  assert.deepEqual(await asked(after, 'one', 'free', 2), [false, true])
})

test('postgres: processes count together', async (t) => {
  const url = await freshUrl('postgres', t)
  const both = await Promise.all(
    [1, 2].map(async () => RateLimits.open(await openAt(t, url), LIMITS, NO_QUOTAS, SILENT)),
  )
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, i) => asked(both[i % 2]!, 'one', 'standard', 1)),
  )
  assert.equal(answers.flat().filter((isExceeded) => !isExceeded).length, LIMITS.standardPerHour)
})

test('postgres: while it is away each process counts by itself, and says so once', async () => {
  const addAll = () => Promise.reject(new Fault('STORE_UNAVAILABLE', 'away'))
  const store = { kind: 'postgres', rateLimits: { addAll } } as unknown as Store
  const lines: string[] = []
  const log = createLogTo('warn', { write: (line) => lines.push(line) })
  const limits = await RateLimits.open(store, LIMITS, NO_QUOTAS, log)
  assert.deepEqual(await asked(limits, 'one', 'free', 5), [false, false, false, true, true])
  assert.equal(lines.length, 1)
  assert.match(lines[0]!, /counted in this process only/)
})

test('the quota of an app is one count for all keys of its team, and another team has its own', async (t) => {
  const manage = await TestManagement.start(t)
  const quota = { hour: 5, day: 1_000 }
  assert.equal((await manage.ask('POST', '/v1/apps', { id: 'shop', quota })).status, 201)
  await manage.ask('POST', '/v1/apps', { id: 'blog' })
  const ask = async (key: string, path = '/v1/me') =>
    manage.ask('GET', path, undefined, { authorization: `Bearer ${key}` })
  const [one, other, both] = [
    await manage.key({ apps: ['shop'] }), // of the scope admin, so its plan has no limit
    await manage.key({ apps: ['shop'], scopes: ['read'], plan: 'free' }),
    await manage.key({ apps: ['blog', 'shop'], scopes: ['read'] }),
  ]
  const first = await ask(one)
  assert.equal(first.headers.get('ratelimit-policy'), '"shop/hour";q=5;w=3600')
  assert.match(first.headers.get('ratelimit') ?? '', /^"shop\/hour";r=4;t=3(?:600|5\d\d)$/)
  const second = await ask(other)
  assert.equal(second.headers.get('ratelimit-policy'), '"free";q=1000;w=86400, "shop/hour";q=5;w=3600')
  assert.match(second.headers.get('ratelimit') ?? '', /^"free";r=999;t=\d+, "shop\/hour";r=3;t=\d+$/)
  for (const key of [both, one, other]) assert.equal((await ask(key)).status, 200)
  for (const key of [both, one, other, await manage.key({ apps: ['shop'] })])
    for (const path of ['/v1/me', '/v1/nothing']) {
      const { status, headers, body } = await ask(key, path)
      assert.deepEqual([status, body.code], [429, 'rate_limited'])
      assert.match(body.detail, /^the quota of the app "shop" \(5 per hour\) is used up: try again in \d+ s$/)
      assert.match(headers.get('ratelimit') ?? '', /^"shop\/hour";r=0;t=\d+$/)
      assert.equal(headers.get('retry-after'), /t=(\d+)/.exec(headers.get('ratelimit')!)![1])
    }
  assert.equal((await ask(await manage.key({ apps: ['blog'] }))).status, 200)
  // Operators raise it, for the current window, too.
  assert.equal((await manage.ask('PATCH', '/v1/apps/shop', { quota: { hour: 6 } })).status, 200)
  await until(async () => (await manage.ask('GET', '/v1/apps/shop')).body.quota.hour === 6)
  await until(async () => (await ask(one)).status === 200)
  assert.equal((await ask(one)).status, 429)
  await manage.ask('PATCH', '/v1/apps/shop', { quota: null })
  await until(async () => (await ask(one)).headers.get('ratelimit')!.startsWith('"unlimited"'))
})

for (const kind of KINDS) {
  test(`${kind}: a call counts against every app of the caller, and against none if one is used up`, async (t) => {
    const quotas: Record<string, AppQuota> = { shop: { hour: 3 }, cart: { hour: 100, day: 10 } }
    const quotaOf = (app: string) => quotas[app] ?? null
    const limits = await RateLimits.open(await openAt(t, await freshUrl(kind, t)), LIMITS, quotaOf, SILENT)
    const left = async (...apps: readonly string[]) => {
      const { isExceeded, what, headers } = await limits.count(
        principalOf('team', 'unlimited', ['admin'], apps),
      )
      return isExceeded ? what : headers['RateLimit']!.replace(/;t=\d+$/, '')
    }
    assert.equal(await left('cart', 'shop', 'none'), '"shop/hour";r=2')
    assert.equal(await left('shop'), '"shop/hour";r=1')
    assert.equal(await left('cart'), '"cart/day";r=8')
    assert.equal(await left('shop', 'cart'), '"shop/hour";r=0')
    for (let i = 0; i < 3; i++) assert.equal(await left('cart', 'shop'), 'the app "shop" (3 per hour)')
    assert.equal(await left('cart'), '"cart/day";r=6')
    assert.equal(await left('none'), '"unlimited";r=999999999999999')
    assert.deepEqual(await asked(limits, 'one', 'free', 4), [false, false, false, true])
    // A caller whose plan is used up takes nothing from its team.
    const one = principalOf('one', 'free', ['read'], ['cart'])
    assert.equal((await limits.count(one)).what, 'this plan')
    assert.equal(await left('cart'), '"cart/day";r=5')
  })

  test(`${kind}: a restart forgets nothing of the quota of an app`, async (t) => {
    const url = await freshUrl(kind, t)
    const answers = []
    for (let run = 0; run < 3; run++) {
      const store = await Store.open(url)
      const limits = await RateLimits.open(store, LIMITS, () => ({ day: 2 }), SILENT)
      answers.push(
        (await limits.count(principalOf(`key ${run}`, 'unlimited', ['read'], ['shop']))).isExceeded,
      )
      await limits.write()
      await store.close()
    }
    assert.deepEqual(answers, [false, false, true])
  })
}

test('postgres: processes count the quota of an app together', async (t) => {
  const url = await freshUrl('postgres', t)
  const quotaOf = () => ({ hour: 5, day: 50 })
  const both = await Promise.all(
    [1, 2].map(async () => RateLimits.open(await openAt(t, url), LIMITS, quotaOf, SILENT)),
  )
  const answers = await Promise.all(
    Array.from({ length: 20 }, async (_, i) => {
      const apps = i % 4 < 2 ? ['shop', 'cart'] : ['cart', 'shop']
      return (await both[i % 2]!.count(principalOf(`key ${i}`, 'unlimited', ['admin'], apps))).isExceeded
    }),
  )
  assert.equal(answers.filter((isExceeded) => !isExceeded).length, 5)
})

async function asked(
  limits: RateLimits,
  id: string,
  plan: Plan,
  times: number,
  scopes: readonly Scope[] = ['read'],
): Promise<boolean[]> {
  const principal = principalOf(id, plan, scopes)
  const answers: boolean[] = []
  for (let i = 0; i < times; i++) answers.push((await limits.count(principal)).isExceeded)
  return answers
}

function principalOf(
  id: string,
  plan: Plan,
  scopes: readonly Scope[],
  apps: readonly string[] | null = null,
): Principal {
  const scope = apps === null ? ('*' as const) : new Set(apps)
  return { id, name: id, apps: scope, scopes: new Set(scopes), plan, expiresAtMs: null }
}
