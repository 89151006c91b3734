import assert from 'node:assert/strict'
import { test } from 'tap'
import { seen } from '../contract/seen.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { TestManagement } from './management.ts'

const GPTBOT = {
  ...{ verdict: 'agent', agent: 'gptbot', category: 'crawler', confidence: 0.97 },
  ...{ purposes: ['training', 'search'], verified: 'ip-range', done: 'block', rule: 'no-crawlers' },
} as const

for (const kind of KINDS)
  test(`${kind}: requests are counted by their values, most first, with the filters of the list`, async (t) => {
    const manage = await TestManagement.start(t, { storeUrl: await freshUrl(kind, t), knows: true })
    await manage.fillCatalogue()
    const atMs = Date.now() - 60_000
    await manage.take([
      ...[1, 2, 3].map((number) =>
        seen(number, { ...GPTBOT, seenAtMs: atMs + number, host: 'a.example', path: '/a', app: 'shop' }),
      ),
      seen(4, { seenAtMs: atMs + 4, host: 'b.example', path: '/b', ja4h: 'ge20_b_222222222222' }),
      seen(5, { seenAtMs: atMs + 5, host: null, path: '/a', ja4h: 'ge20_b_333333333333' }),
    ])
    const facets = async (query: string) => {
      const { status, body } = await manage.ask('GET', `/v1/requests/facets?${query}`)
      assert.equal(status, 200, query)
      const named = Object.fromEntries(
        body.facets.map(({ facet, values, others }: { facet: string; values: Counted[]; others: number }) => [
          facet,
          [...values.map(({ value, requests }) => [value, requests]), ...(others > 0 ? [['…', others]] : [])],
        ]),
      )
      return { requests: body.requests, stopped: body.stopped_at, ...named }
    }
    const known = { requests: 5, stopped: null }
    assert.deepEqual(await facets('facets=app,host,path,verdict,action,rule,agent_id'), {
      ...known,
      app: [
        ['shop', 3],
        ['default', 2],
      ],
      host: [
        ['a.example', 3],
        [null, 1],
        ['b.example', 1],
      ],
      path: [
        ['/a', 4],
        ['/b', 1],
      ],
      verdict: [
        ['agent', 3],
        [seen(4).verdict, 2],
      ],
      action: [
        ['block', 3],
        [seen(4).done, 2],
      ],
      rule: [
        ['no-crawlers', 3],
        [seen(4).rule, 2],
      ],
      agent_id: [
        ['gptbot', 3],
        [null, 2],
      ],
    })
    assert.deepEqual(await facets('facets=purpose,verified,http_version&verified=true'), {
      ...{ requests: 3, stopped: null },
      purpose: [
        ['search', 3],
        ['training', 3],
      ],
      verified: [['ip-range', 3]],
      http_version: [[null, 3]],
    })
    assert.deepEqual(await facets('facets=ja4h,http_version&http_version=2&limit=1'), {
      ...{ requests: 2, stopped: null },
      ja4h: [
        ['ge20_b_222222222222', 1],
        ['…', 1],
      ],
      http_version: [['2', 2]],
    })
    const all = (await manage.ask('GET', '/v1/requests/facets')).body.facets as { facet: string }[]
    assert.equal(all.length, 16)
    const [agent] = (await manage.ask('GET', '/v1/requests/facets?facets=agent_id')).body.facets
    assert.deepEqual(
      agent.values.map(({ name }: Counted) => name),
      ['GPTBot', null],
    )
    for (const [query, pointer] of [
      ['facets=hots', '/facets'],
      ['limit=0', '/limit'],
      ['verified=yes', '/verified'],
      ['cursor=x', '/cursor'],
    ]) {
      const { status, body } = await manage.ask('GET', `/v1/requests/facets?${query}`)
      assert.deepEqual([status, body.errors[0].pointer], [400, pointer], query)
    }
    assert.deepEqual(manage.failures, [])
  })

for (const kind of KINDS)
  test(`${kind}: counts say how many requests they stand for, and of what is contradicted`, async (t) => {
    const manage = await TestManagement.start(t, { storeUrl: await freshUrl(kind, t) })
    const seenAtMs = Date.now()
    const spoofed = { evidence: ['names-browser', 'spoofed-browser'], app: 'shop' } as const
    await manage.take([
      ...[1, 2].map((number) => seen(number, { seenAtMs, path: '/many', verdict: 'human', sampled: 0.1 })),
      ...[3, 4, 5].map((number) => seen(number, { seenAtMs, path: '/all', ...spoofed })),
    ])
    const ask = async (query: string) => (await manage.ask('GET', `/v1/requests/facets?${query}`)).body
    const { requests, estimated, facets } = await ask('facets=path,conflict')
    assert.deepEqual([requests, estimated], [5, 23])
    const [paths, conflicts] = facets.map(({ values }: { values: WeighedValue[] }) =>
      values.map(({ value, requests, estimated }) => [value, requests, estimated]),
    )
    assert.deepEqual(paths, [
      ['/many', 2, 20],
      ['/all', 3, 3],
    ])
    assert.deepEqual(conflicts, [
      [null, 2, 20],
      ['spoofed-browser', 3, 3],
    ])
    assert.equal((await ask('conflict=spoofed-browser')).requests, 3)
    assert.equal((await ask('conflict=host-foreign')).requests, 0)
    const { body } = await manage.ask('GET', '/v1/requests?conflict=spoofed-browser')
    assert.equal(body.requests.length, 3)
    assert.equal((await manage.ask('GET', '/v1/requests?conflict=spoofed')).status, 400)
  })

for (const kind of KINDS)
  test(`${kind}: facets count what the caller may see, as it may see it`, async (t) => {
    const manage = await TestManagement.start(t, { storeUrl: await freshUrl(kind, t) })
    const seenAtMs = Date.now()
    await manage.take([
      seen(1, { seenAtMs, app: 'shop', address: '203.0.113.7', path: '/reset/Xk29fLq0aB' }),
      seen(2, { seenAtMs, app: 'shop', address: '203.0.113.8', path: '/reset/Zk17fLq9cD' }),
      seen(3, { seenAtMs, app: 'other', address: '198.51.100.1', path: '/of-another-team' }),
    ])
    const key = await manage.key({ scopes: ['read'], apps: ['shop'] })
    const ask = async (query: string) =>
      manage.ask('GET', `/v1/requests/facets?${query}`, undefined, { authorization: `Bearer ${key}` })
    const { body } = await ask('facets=app,path,address')
    const counts = body.facets.map(({ values }: { values: Counted[] }) =>
      values.map(({ value, requests }) => [value, requests]),
    )
    assert.deepEqual(counts, [[['shop', 2]], [['/reset/[redacted]', 2]], [['203.0.113.0/24', 2]]])
    assert.equal((await ask('app=other')).body.requests, 0)
    assert.equal((await ask('path=/reset/X')).body.requests, 0, 'a filter finds out nothing more')
    assert.equal((await ask('path=/reset/[re')).body.requests, 2)
    assert.equal((await ask('address=203.0.113.7')).status, 403)
    const none = await manage.key({ scopes: ['detect'] })
    const refused = await manage.ask('GET', '/v1/requests/facets', undefined, {
      authorization: `Bearer ${none}`,
    })
    assert.equal(refused.status, 403)
    assert.deepEqual(manage.failures, [])
  })

interface WeighedValue extends Counted {
  readonly estimated: number
}

interface Counted {
  readonly value: string | null
  readonly name: string | null
  readonly requests: number
}
