import assert from 'node:assert/strict'
import { test } from 'tap'
import { HOUR_MS, seen } from '../contract/seen.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { SETTINGS, TestManagement } from './management.ts'

const GPTBOT = { verdict: 'agent', agent: 'gptbot', category: 'crawler' } as const
const RULES = '/v1/agents/gptbot/rules'
const CHARGE = { price: '0.002', currency: 'USD', scheme: 'crawler-price' }
const LIMIT = { per: 'agent', requests: 10, window: '1m' }
const ORGANISATION = {
  first: [
    { name: 'not-this', when: { agent: 'claudebot' }, action: 'block' },
    { name: 'other-app', when: { category: 'crawler', host: 'theirs.example' }, action: 'block' },
    { name: 'trial', when: { agent: 'gptbot' }, action: 'block', dry_run: true },
    {
      name: 'over',
      when: { agent: 'gptbot' },
      action: 'block',
      expires: '2020-01-01T00:00:00Z',
    },
  ],
  last: [
    { name: 'spoofed', when: { agent: 'gptbot', verified: false }, action: 'block' },
    {
      name: 'words',
      when: { expression: 'verdict.category == "crawler" && request.path != "/x"' },
      action: 'tag',
    },
    { name: 'no-sdk', when: { not: { category: 'crawler' } }, action: 'block' },
    { name: 'all-crawlers', when: { category: 'crawler' }, action: { rate_limit: LIMIT } },
    { name: 'never-tried', when: {}, action: 'block' },
  ],
  otherwise: 'tag',
}
const OF_SHOP = {
  rules: [{ name: 'pay', when: { purpose: 'training', path: '/paid/*' }, action: { charge: CHARGE } }],
}

for (const kind of KINDS) {
  test(`${kind}: the rules that touch an agent are listed with their terms, of the own apps only`, async (t) => {
    const manage = await TestManagement.start(t, {
      ...{ knows: true, storeUrl: await freshUrl(kind, t) },
      payments: {
        ...SETTINGS.payments,
        terms: { x402: null, crawlerPrice: { currency: 'USD', accounts: ['gptbot'] }, license: null },
      },
    })
    await manage.fillCatalogue()
    for (const id of ['shop', 'blog']) await manage.ask('POST', '/v1/apps', { id })
    const put = await manage.ask('PUT', '/v1/policy', ORGANISATION, { 'if-match': '*' })
    assert.equal(put.status, 200, JSON.stringify(put.body))
    const own = await manage.ask('PUT', '/v1/apps/shop/policy', OF_SHOP, { 'if-match': '*' })
    assert.equal(own.status, 200, JSON.stringify(own.body))
    const { status, body } = await manage.ask('GET', `${RULES}?app=shop`)
    assert.equal(status, 200, JSON.stringify(body))
    const rule = { expires_at: null, limit: null, price: null, dry_run: false }
    const limit = { requests: 10, window_ms: 60_000, per: 'agent' }
    const price = { amount: '0.002', currency: 'USD', schemes: ['crawler-price'], pass_ms: null }
    assert.deepEqual(body, {
      ...{ agent_id: 'gptbot', app: 'shop', otherwise: null },
      rules: [
        { ...rule, rule: 'other-app', layer: 'first', action: 'block', depends_on: ['host'] },
        { ...rule, rule: 'trial', layer: 'first', action: 'block', dry_run: true, depends_on: [] },
        { ...rule, rule: 'pay', layer: 'app', action: 'charge', price, depends_on: ['path'] },
        { ...rule, rule: 'spoofed', layer: 'last', action: 'block', depends_on: ['verified'] },
        { ...rule, rule: 'words', layer: 'last', action: 'tag', depends_on: ['expression'] },
        { ...rule, rule: 'all-crawlers', layer: 'last', action: 'rate_limit', limit, depends_on: [] },
      ],
    })
    const namesOf = async (path: string, headers = {}) => {
      const { body } = await manage.ask('GET', path, undefined, headers)
      return [body.app, ...body.rules.map((each: { rule: string }) => each.rule)]
    }
    const everywhere = ['other-app', 'trial', 'spoofed', 'words', 'all-crawlers']
    assert.deepEqual(await namesOf(RULES), ['default', ...everywhere])
    assert.deepEqual(await namesOf('/v1/agents/curl/rules'), ['default', 'words', 'no-sdk'])
    // A team sees rules of the organisation only where they do not depend on what may be of another app.
    const key = await manage.key({ apps: ['shop'], scopes: ['read', 'admin'] })
    const team = { authorization: `Bearer ${key}` }
    assert.deepEqual(await namesOf(RULES, team), ['shop', 'trial', 'pay', 'all-crawlers'])
    assert.equal((await manage.ask('GET', `${RULES}?app=blog`, undefined, team)).status, 404)
    const reader = { authorization: `Bearer ${await manage.key({ scopes: ['read'] })}` }
    assert.equal((await manage.ask('GET', RULES, undefined, reader)).status, 403)
    assert.equal((await manage.ask('GET', '/v1/agents/no-such-agent/rules')).status, 404)
    await manage.ask('PUT', '/v1/policy', { rules: [] }, { 'if-match': '*' })
    const none = (await manage.ask('GET', RULES)).body
    assert.deepEqual([none.rules, none.otherwise], [[], 'tag'])
  })

  test(`${kind}: the fingerprints of an agent are listed with when they were seen, and new ones marked`, async (t) => {
    const manage = await TestManagement.start(t, { knows: true, storeUrl: await freshUrl(kind, t) })
    await manage.fillCatalogue()
    for (const id of ['shop', 'blog']) await manage.ask('POST', '/v1/apps', { id })
    const nowMs = Date.now()
    const oldMs = nowMs - 5 * HOUR_MS
    const print = (ja4: string) => ({ ...GPTBOT, ja4, ja4h: null, http2: null, app: 'shop' })
    await manage.take([
      seen(1, {
        ...print('t13d0001h2_aaaaaaaaaaaa_bbbbbbbbbbbb'),
        seenAtMs: oldMs,
        http2: '1:65536|0|0|m,a,s,p',
      }),
      seen(2, { ...print('t13d0001h2_aaaaaaaaaaaa_bbbbbbbbbbbb'), seenAtMs: nowMs }),
      seen(3, { ...print('t13d0002h2_aaaaaaaaaaaa_bbbbbbbbbbbb'), seenAtMs: nowMs, sampled: 0.5 }),
      seen(4, { ...print('t13d0003h2_aaaaaaaaaaaa_bbbbbbbbbbbb'), seenAtMs: nowMs, app: 'blog' }),
      seen(5, { ...print('t13d0004h2_aaaaaaaaaaaa_bbbbbbbbbbbb'), seenAtMs: nowMs, agent: 'claudebot' }),
    ])
    const path = '/v1/agents/gptbot/fingerprints'
    const { status, body } = await manage.ask('GET', `${path}?window=1h&app=shop`)
    assert.equal(status, 200, JSON.stringify(body))
    const at = (ms: number) => new Date(ms).toISOString()
    const { fingerprints, ...rest } = body
    assert.deepEqual(rest, { agent_id: 'gptbot', window: '1h', requests: 3, others: 0, stopped_at: null })

    const [first, second, third] = fingerprints
    assert.deepEqual(first, {
      ...{ type: 'ja4', value: 't13d0002h2_aaaaaaaaaaaa_bbbbbbbbbbbb', requests: 1, estimated: 2, new: true },
      ...{ first_seen: at(nowMs), last_seen: at(nowMs) },
    })
    assert.deepEqual(second, {
      ...{
        type: 'ja4',
        value: 't13d0001h2_aaaaaaaaaaaa_bbbbbbbbbbbb',
        requests: 2,
        estimated: 2,
        new: false,
      },
      ...{ first_seen: at(oldMs), last_seen: at(nowMs) },
    })
    assert.deepEqual(
      [third.type, third.value, third.new, fingerprints.length],
      ['http2', '1:65536|0|0|m,a,s,p', false, 3],
    )
    assert.equal((await manage.ask('GET', path)).body.requests, 4)
    assert.ok(
      (await manage.ask('GET', path)).body.fingerprints.every((each: { new: unknown }) => each.new === null),
    )
    // A team sees its own apps only.
    const team = { authorization: `Bearer ${await manage.key({ apps: ['blog'], scopes: ['read'] })}` }
    const mine = (await manage.ask('GET', path, undefined, team)).body
    assert.deepEqual([mine.requests, mine.fingerprints[0].value], [1, 't13d0003h2_aaaaaaaaaaaa_bbbbbbbbbbbb'])
    assert.equal((await manage.ask('GET', `${path}?app=shop`, undefined, team)).body.requests, 0)
  })
}
