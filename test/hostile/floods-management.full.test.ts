import assert from 'node:assert/strict'
import { test } from 'tap'
import type { Sighting } from '../../src/plane/sighting.ts'
import { OAuthError } from '../../src/manage/auth/oauth/answer.ts'
import { Revocations } from '../../src/manage/auth/oauth/revocations.ts'
import { Store } from '../../src/store/store.ts'
import { seen } from '../contract/seen.ts'
import { TestManagement } from '../manage/management.ts'
import { basic, clientFor, postForm, tokenFor } from '../manage/oauth-client.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { address6, hex, ja4Of } from './made-up.ts'
import { IS_WHOLE } from './whole.ts'

const ONLY_WHOLE = IS_WHOLE ? false : 'takes long'
const SIGHTINGS = IS_WHOLE ? 20_000 : 1_000

for (const kind of KINDS)
  test(`${kind}: Sightings of which no two are alike fill no table, and make no end of events`, {
    timeout: 300_000,
  }, async (t) => {
    const manage = await TestManagement.start(t, { storeUrl: await freshUrl(kind, t), knows: true })
    await manage.fillCatalogue()
    const other = await Store.open(manage.storeUrl)
    t.teardown(() => other.close())
    const rowsOf = async () => ({
      rollups: await other.rollups.rows(),
      agents: await other.agentsSeen.rows(),
      fingerprints: await other.fingerprintsSeen.rows(),
      windows: await other.threatWindows.rows(),
    })
    const atMs = Date.now()
    const flood = async (from: number, to: number) => {
      for (let at = from; at < to; at += 500)
        await manage.take(Array.from({ length: 500 }, (_, index) => madeUp(at + index, atMs)))
    }
    await flood(0, SIGHTINGS)
    const before = await rowsOf()
    await flood(SIGHTINGS, 2 * SIGHTINGS)
    const after = await rowsOf()
    t.comment(`${kind}: ${JSON.stringify(before)}, then ${JSON.stringify(after)}`)
    // A minute may have ended: then there are as many again.
    assert.ok(
      after.rollups <= Math.max(2 * before.rollups, before.rollups + 200),
      `${after.rollups} of rollups`,
    )
    assert.ok(after.agents <= 4_000, `${after.agents} agents`)
    // 512 of a kind in one transaction.
    assert.ok(after.fingerprints < 4 * 2 * SIGHTINGS, `${after.fingerprints} fingerprints`)
    const { status, body } = await manage.ask('GET', '/v1/events?limit=100', undefined, {
      accept: 'application/json',
    })
    assert.equal(status, 200, JSON.stringify(body))
    // One for each agent that is new, of which there are so many, and one for each storm.
    assert.ok(body.total <= after.agents + 100, `${body.total} events`)
    assert.deepEqual(manage.failures, [])
  })

test('so many tokens a minute are revoked, of one client and of all', async () => {
  const revocations = new Revocations()
  for (let count = 0; count < 600; count++) revocations.count('one', 1_000)
  assert.throws(() => revocations.count('one', 2_000), isTooMany)
  for (let count = 0; count < 5_400; count++) revocations.count(`client ${count}`, 3_000)
  assert.throws(() => revocations.count('another', 4_000), isTooMany)
  revocations.count('one', 64_000)
})

test('a client that has tokens made and revoked is told to wait', {
  timeout: 300_000,
  skip: ONLY_WHOLE,
}, async (t) => {
  const manage = await TestManagement.start(t)
  const client = await clientFor(manage, {})
  const revoke = async () => {
    const token = await tokenFor(manage, client)
    return (await postForm(manage.url, '/oauth/revoke', { token }, basic(client))).status
  }
  const statuses: number[] = []
  // On a slow machine another minute begins meanwhile.
  while (!statuses.includes(429)) statuses.push(...(await Promise.all(Array.from({ length: 20 }, revoke))))
  assert.ok(statuses.filter((status) => status === 200).length >= 600, String(statuses.length))
  assert.deepEqual(manage.failures, [])
})

function isTooMany(error: unknown): boolean {
  return error instanceof OAuthError && error.status === 429
}

function madeUp(number: number, atMs: number): Sighting {
  const isAgent = number % 2 === 0
  return seen(number, {
    ...{ seenAtMs: atMs, address: address6(number), host: `h${number}.example`, path: `/${hex(number, 60)}` },
    ...{ userAgent: `bot-${number}/1`, ja4: ja4Of(number), ja4h: `ge11nn050000_${hex(number, 12)}_0_0` },
    ...{ ja4s: `t130200_1301_${hex(number, 12)}`, stable: `g${ja4Of(number)}`, rule: `r${number}` },
    ...{ verdict: isAgent ? 'agent' : 'unknown', agent: isAgent ? `a-${hex(number, 12)}` : null },
    ...{ category: isAgent ? 'crawler' : null, software: `s-${number}`, forged: [`x-agent-${number}`] },
    ...{ signer: `https://a${number}.example`, key: hex(number, 43), proxy: `p${number}` },
  })
}
