import assert from 'node:assert/strict'
import { test } from 'tap'
import { seen } from '../contract/seen.ts'
import { skipped } from '../e2e/programs.ts'
import { looksFine, openDashboard } from './browser.ts'

const skip = skipped('chromium')

test('Live shows what comes in as it does', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t)
  await goTo('live')
  await page.getByText('No requests yet').waitFor()
  await looksFine(page, 'live-empty')
  await page.getByText('Listening').waitFor()
  const nowMs = Date.now()
  const gptbot = { verdict: 'agent', agent: 'gptbot', category: 'crawler', confidence: 0.97 } as const
  const agent = { ...gptbot, purposes: ['training'] }
  await manage.take([
    ...[1, 2].map((number) => seen(number, { ...agent, seenAtMs: nowMs })),
    seen(4, { ...agent, done: 'block', seenAtMs: nowMs }),
    seen(8, {
      ...agent,
      verified: 'web-bot-auth',
      evidence: ['signed-from-foreign-address'],
      seenAtMs: nowMs,
    }),
    seen(5, { verdict: 'human', confidence: 0.8, seenAtMs: nowMs }),
  ])
  const figure = (name: string) => page.locator('.figures div', { hasText: name }).locator('dd')
  await figure('Requests per minute').getByText('5').waitFor()
  assert.match((await figure('From agents').textContent())!, /^4 80 %$/)
  assert.match((await figure('Blocked').textContent())!, /^1 ?$/)
  const feed = page.getByRole('list', { name: 'Requests, newest first' })
  await feed.getByRole('listitem').nth(4).waitFor()
  assert.equal(await feed.getByRole('listitem').count(), 5)
  await feed.getByText('verified: web-bot-auth').waitFor()
  // A name without a proof is a claim.
  assert.equal(await feed.getByText('unverified', { exact: true }).count(), 3)
  await feed.getByText('but signed from foreign address').waitFor()
  await page.getByRole('button', { name: 'Pause' }).click()
  await manage.take([seen(6, { ...agent, path: '/later', seenAtMs: Date.now() })])
  await page.waitForTimeout(1_200) // a paused list does not change
  assert.equal(await feed.getByText('/later').count(), 0)
  await page.getByRole('button', { name: 'Pause' }).click()
  await manage.take([seen(7, { ...agent, path: '/latest', seenAtMs: Date.now() })])
  await feed.getByText('/latest').waitFor()
  await looksFine(page, 'live')
})

test('Live works with a read key, and shows networks instead of addresses', { skip }, async (t) => {
  const { manage, page } = await openDashboard(t, { isStrange: true })
  const { body: key } = await manage.ask('POST', '/v1/keys', { name: 'guest', access: 'read' })
  await page.getByLabel('API key').fill(key.key)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  await page.getByRole('link', { name: 'Live' }).click()
  await page.getByText('Listening').waitFor()
  const unknown = { agent: null, software: null, category: null } as const
  const client = { ...unknown, verdict: 'human', address: '198.51.100.77', path: '/reset/a1b2c3d4' } as const
  await manage.take([seen(1, { ...client, seenAtMs: Date.now() })])
  const feed = page.getByRole('list', { name: 'Requests, newest first' })
  await feed.getByText('198.51.100.0/24').waitFor()
  await feed.getByText('/reset/[redacted]').waitFor()
  const text = await page.content()
  assert.ok(!text.includes('198.51.100.77') && !text.includes('a1b2c3d4'))
})

test('hours of requests take no more room than a minute of them', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t)
  await goTo('live')
  await page.getByText('Listening').waitFor()
  const session = await page.context().newCDPSession(page)
  const heapAfter = async (batches: number, pauseMs = 100) => {
    for (let batch = 0; batch < batches; batch++) {
      const requests = Array.from({ length: 25 }, (_, at) =>
        seen(batch * 25 + at, { path: `/${at}`, seenAtMs: Date.now() }),
      )
      await manage.take(requests)
      await page.waitForTimeout(pauseMs)
    }
    await session.send('HeapProfiler.collectGarbage')
    const { usedSize } = await session.send('Runtime.getHeapUsage')
    return usedSize / 1_048_576
  }
  // What is loaded and compiled at first is not counted.
  await heapAfter(60)
  const before = await heapAfter(20)
  const after: number[] = []
  if (MINUTES === 0) after.push(await heapAfter(100))
  while (after.length < MINUTES) {
    after.push(await heapAfter(60, 950))
    t.comment(`minute ${after.length}: ${after.at(-1)!.toFixed(2)} MiB, ${before.toFixed(2)} at first`)
  }
  for (const each of after) assert.ok(each - before < 3, `${each - before} MiB more`)
  assert.ok(
    (await page.getByRole('list', { name: 'Requests, newest first' }).getByRole('listitem').count()) <= 50,
  )
})

test('where the management plane is gone it says so, and it goes on when that is back', {
  skip,
}, async (t) => {
  const { page, goTo, complaints } = await openDashboard(t)
  await goTo('live')
  await page.getByText('Listening').waitFor()
  await page.context().setOffline(true)
  await page.reload().catch(() => undefined)
  await page.context().setOffline(false)
  await page.reload()
  await page.getByText('Listening').waitFor()
  complaints.length = 0
})

/** `LIVE_MINUTES=60` looks that long; otherwise as many requests come in a few seconds as some minutes have. */
const MINUTES = Number(process.env['LIVE_MINUTES'] ?? 0)
