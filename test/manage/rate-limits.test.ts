import assert from 'node:assert/strict'
import { test } from 'tap'
import { Fault } from '../../src/shared/fault.ts'
import { createLogTo } from '../../src/shared/log.ts'
import type { Plan, Principal, Scope } from '../../src/manage/http/access/principal.ts'
import { RateLimits } from '../../src/manage/limits/rate-limits.ts'
import { Store } from '../../src/store/store.ts'
import { rateLimitsContract } from '../contract/rate-limits.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { TestManagement } from './management.ts'

for (const kind of KINDS) rateLimitsContract(kind)

const SILENT = createLogTo('silent', { write: () => undefined })
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
    const limits = await RateLimits.open(await openAt(t, await freshUrl(kind, t)), LIMITS, SILENT)
    assert.deepEqual(await asked(limits, 'one', 'free', 5), [false, false, false, true, true])
    assert.deepEqual(await asked(limits, 'two', 'free', 1), [false])
    assert.deepEqual(await asked(limits, 'one', 'standard', 6), [false, false, false, false, false, true])
    assert.deepEqual(await asked(limits, 'one', 'unlimited', 1), [false])
  })

  test(`${kind}: those who may do nothing are counted together, however many they say to be`, async (t) => {
    const limits = await RateLimits.open(await openAt(t, await freshUrl(kind, t)), LIMITS, SILENT)
    const answers = []
    for (const id of ['a', 'b', 'c', 'd']) answers.push(...(await asked(limits, id, 'free', 1, [])))
    assert.deepEqual(answers, [false, false, false, true])
    assert.deepEqual(await asked(limits, 'a', 'free', 1), [false])
  })

  test(`${kind}: a restart forgets nothing`, async (t) => {
    const url = await freshUrl(kind, t)
    for (const exceeded of [[false, false], [false, true], [true]]) {
      const store = await Store.open(url)
      const limits = await RateLimits.open(store, LIMITS, SILENT)
      assert.deepEqual(await asked(limits, 'one', 'free', exceeded.length), exceeded)
      await limits.write()
      await store.close()
    }
  })
}

test('sqlite: counting writes nothing', async (t) => {
  const url = await freshUrl('sqlite', t)
  const store = await openAt(t, url)
  const limits = await RateLimits.open(store, LIMITS, SILENT)
  await asked(limits, 'one', 'free', 2)
  assert.deepEqual(await store.rateLimits.current(Date.now()), [])
  await limits.write()
  const after = await RateLimits.open(await openAt(t, url), LIMITS, SILENT)
  assert.deepEqual(await asked(after, 'one', 'free', 2), [false, true])
})

test('postgres: processes count together', async (t) => {
  const url = await freshUrl('postgres', t)
  const both = await Promise.all(
    [1, 2].map(async () => RateLimits.open(await openAt(t, url), LIMITS, SILENT)),
  )
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, i) => asked(both[i % 2]!, 'one', 'standard', 1)),
  )
  assert.equal(answers.flat().filter((isExceeded) => !isExceeded).length, LIMITS.standardPerHour)
})

test('postgres: while it is away each process counts by itself, and says so once', async () => {
  const add = () => Promise.reject(new Fault('STORE_UNAVAILABLE', 'away'))
  const store = { kind: 'postgres', rateLimits: { add } } as unknown as Store
  const lines: string[] = []
  const log = createLogTo('warn', { write: (line) => lines.push(line) })
  const limits = await RateLimits.open(store, LIMITS, log)
  assert.deepEqual(await asked(limits, 'one', 'free', 5), [false, false, false, true, true])
  assert.equal(lines.length, 1)
  assert.match(lines[0]!, /counted in this process only/)
})

async function asked(
  limits: RateLimits,
  id: string,
  plan: Plan,
  times: number,
  scopes: readonly Scope[] = ['read'],
): Promise<boolean[]> {
  const principal: Principal = { id, name: id, scopes: new Set(scopes), plan, expiresAtMs: null }
  const answers: boolean[] = []
  for (let i = 0; i < times; i++) answers.push((await limits.count(principal)).isExceeded)
  return answers
}
