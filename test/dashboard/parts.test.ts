import assert from 'node:assert/strict'
import { test } from 'tap'
import { fedWith } from '../../src/dashboard/pages/live/fed.ts'
import { addressOf } from '../../src/dashboard/api/address.ts'
import { adviceFor, problemOf } from '../../src/dashboard/api/problem.ts'
import {
  emptySeconds,
  sumOf,
  type TrafficSample,
  withMinutes,
  withSecond,
} from '../../src/manage/intake/traffic.ts'
import { summaryOf } from '../../src/dashboard/pages/overview/summary.ts'
import { csv } from '../../src/shared/csv.ts'
import { ago, counted, duration, percent, short } from '../../src/dashboard/parts/format.ts'
import { plotData, sumsOf } from '../../src/dashboard/parts/plots/plot-data.ts'
import { isScaled, rowWindow, scrollTopBy, scrollTopFor } from '../../src/dashboard/parts/window.ts'

test('what is put into an address stays in its place', async () => {
  assert.equal(addressOf('/agents/{agent_id}', { agent_id: 'a/b?c#d e' }), '/v1/agents/a%2Fb%3Fc%23d%20e')
  assert.equal(addressOf('/stats', {}, { window: '1h', bucket: undefined, q: '' }), '/v1/stats?window=1h')
  assert.equal(addressOf('/x', {}, { q: 'a&b=c', all: false }), '/v1/x?q=a%26b%3Dc&all=false')
})

test('a problem is read from anything, and each says what to do', async () => {
  const errors = [{ pointer: '/name', detail: 'is empty' }, 'no error']
  const whole = problemOf(400, { code: 'invalid_request', detail: 'wrong', errors, request_id: 'r1' })
  assert.deepEqual(
    [whole.status, whole.code, whole.message, whole.errors.length, whole.requestId],
    [400, 'invalid_request', 'wrong', 1, 'r1'],
  )
  for (const body of [null, 'text', 7, [], { code: 3, errors: 'x' }])
    assert.match(problemOf(502, body).message, /^the server answered 502/)
  for (const status of [0, 400, 401, 403, 404, 409, 412, 429, 500, 503])
    assert.ok(adviceFor({ status, code: 'x' }).length > 20)
})

test('seconds are kept, as many as there are places, and summed', async () => {
  const second = (requests: number) => ({
    ...{ requests, by_verdict: { agent: requests }, by_action: { tag: requests }, by_category: {} },
    ...{ by_purpose: {} },
    agents: [{ id: 'gptbot', requests }],
  })
  let seconds = emptySeconds(10_000, 3)
  assert.deepEqual([seconds.at, sumOf(seconds, 3).requests], [[7, 8, 9], 0])
  for (const [atMs, requests] of [
    [10_100, 1],
    [10_900, 2],
    [12_000, 4],
    [13_000, 8],
  ] as const)
    seconds = withSecond(seconds, atMs, second(requests))
  assert.deepEqual(seconds.at, [11, 12, 13])
  const { requests, by_verdict, agents } = sumOf(seconds, 2)
  assert.deepEqual([requests, by_verdict, agents], [12, { agent: 12 }, [{ id: 'gptbot', requests: 12 }]])
})

test('no cell of a table is a formula, and none breaks a row', async () => {
  const rows = [
    ['=1+1', 'a,b', 'say "x"'],
    ['@SUM(A1)', 'two\nlines', null],
    [-5, '-5', '+1'],
    ['\t=1', true, undefined],
    ['a;=1', '\uff1d1', 'plain'],
  ]
  assert.equal(
    csv([['a', 'b', 'c'], ...rows]),
    `a,b,c\r\n'=1+1,"a,b","say ""x"""\r\n'@SUM(A1),"two\nlines",\r\n-5,'-5,'+1\r\n"'\t=1",true,\r\n"a;=1",'\uff1d1,plain\r\n`,
  )
})

test('numbers and times as people read them', async () => {
  assert.deepEqual([short(9_999), short(12_345), short(4_500_000)], ['9,999', '12.3K', '4.5M'])
  assert.deepEqual([0, 0.001, 0.5, 0.999, 1].map(percent), ['0 %', '< 1 %', '50 %', '> 99 %', '100 %'])
  assert.deepEqual([5, 1_500, 90_000, 7_200_000, 200_000_000].map(duration), [
    ...['5 ms', '1.5 s', '2 min', '2 h', '2 days'],
  ])
  assert.deepEqual([counted(1, 'request'), counted(1_234, 'request')], ['1 request', '1,234 requests'])
  const now = Date.parse('2026-11-21T12:00:00Z')
  assert.deepEqual(
    ['2026-11-21T11:59:58Z', '2026-11-21T09:00:00Z', '2026-11-20T12:00:00Z'].map((at) => ago(at, now)),
    ['2 seconds ago', '3 hours ago', 'yesterday'],
  )
})

test('by the keys no row is passed over, however long the list', async () => {
  const list = { total: 1_000_000, rowHeight: 40, viewHeight: 600 }
  assert.deepEqual([isScaled(list), isScaled({ total: 1_000, rowHeight: 40 })], [true, false])
  let scrollTop = 0
  for (let row = 0; row < 1_000; row += 14) {
    const { first, end } = rowWindow({ ...list, scrollTop })
    assert.ok(first <= row && row < end, `${row} of ${first} to ${end}`)
    scrollTop = scrollTopBy(14, { ...list, scrollTop })
  }
  assert.equal(scrollTopBy(-1_000_000, { ...list, scrollTop }), 0)
  assert.equal(
    rowWindow({ ...list, scrollTop: scrollTopBy(1_000_000, { ...list, scrollTop }) }).end,
    1_000_000,
  )
})

test('every row of a list of any length can be scrolled to', async () => {
  for (const total of [0, 1, 15, 10_000, 1_000_000, 1_000_000_000]) {
    const list = { total, rowHeight: 40, viewHeight: 600 }
    const last = rowWindow({ ...list, scrollTop: Number.MAX_SAFE_INTEGER })
    assert.ok(last.height <= 8_000_000)
    assert.deepEqual([rowWindow({ ...list, scrollTop: 0 }).first, last.end], [0, total])
    for (const row of [0, 1, Math.floor(total / 3), total - 1].filter((each) => each >= 0 && each < total)) {
      const scrollTop = scrollTopFor(row, list)
      const { first, end, top } = rowWindow({ ...list, scrollTop })
      assert.ok(first <= row && row < end && end - first < 40, `row ${row} of ${total}`)
      // It is drawn where one looks.
      const y = top + (row - first) * 40 - scrollTop
      assert.ok(y > -41 && y < 600, `row ${row} of ${total} is drawn at ${y}`)
    }
  }
})

test('a second without a report is unknown, and is filled with what is left of its minute', async () => {
  const sample = (requests: number): TrafficSample => ({
    ...{ requests, by_verdict: { human: requests }, by_action: { pass: requests } },
    ...{ by_category: {}, by_purpose: {}, agents: [] },
  })
  // A late report leaves no gap, a lost connection does.
  let seconds = withSecond(emptySeconds(100_000, 10), 102_000, sample(4))
  assert.deepEqual(seconds.at.slice(-2), [99, 102])
  seconds = withSecond(seconds, 107_000, sample(8))
  assert.deepEqual(seconds.at, [96, 97, 98, 99, 102, 103, 104, 105, 106, 107])
  const requests = ({ traffic }: typeof seconds) => traffic.map((second) => second?.requests ?? null)
  assert.deepEqual(requests(seconds), [null, null, null, null, 4, null, null, null, null, 8])
  // From 60 to 120 there were 12 + 46 requests, of which 12 are known; of the minute before nothing is known.
  const counts = { requests: 58, by_verdict: { human: 58 }, by_action: { pass: 58 } }
  const filled = withMinutes(seconds, [{ atS: 60, endS: 108, ...counts }])
  assert.deepEqual(requests(filled), [1, 1, 1, 1, 4, 1, 1, 1, 1, 8])
  assert.equal(filled.traffic[0]!.by_verdict['human'], 1)
  assert.equal(filled.traffic[0]!.by_action['pass'], 1)
  // It is over, or it counts less than was heard: no negative rates.
  assert.deepEqual(requests(withMinutes(seconds, [{ atS: 104, endS: 108, ...counts, requests: 3 }])), [
    ...[null, null, null, null, 4, null, 0, 0, 0, 8],
  ])
  assert.deepEqual(withMinutes(seconds, [{ atS: 107, endS: 107, ...counts }]), seconds)
  const far = withSecond(seconds, 900_000, sample(1))
  assert.deepEqual([far.at.length, far.at[0], requests(far).filter((each) => each !== null)], [10, 891, [1]])
})

test('what is unknown is a gap of a plot', async () => {
  const lines = [
    { label: 'a', colour: 'human', values: [1, null, 3] },
    { label: 'b', colour: 'agent', values: [1, null, 0.4] },
  ]
  assert.deepEqual(plotData([7, 8, 9], lines, { isStacked: true, isBars: false }), [
    [7, 8, 9],
    [2, null, 3.4],
    [1, null, 3],
  ])
  assert.deepEqual(plotData([7, 8, 9], lines, { isStacked: false, isBars: false })[1], [1, null, 3])
  const zero = [{ ...lines[0]!, values: [0, null, 3] }]
  assert.deepEqual(plotData([7, 8, 9], zero, { isStacked: true, isBars: true })[1], [null, null, 3])
  assert.deepEqual(plotData([7, 8, 9], zero, { isStacked: true, isBars: false })[1], [0, null, 3])
  assert.equal(sumsOf(lines), 'a 4, b 1')
})

test('each share of a time range says whose it is', async () => {
  const statistics = {
    agents: { total: 9, seen: 3, new: 1 },
    detection: {
      requests: 100,
      agents: 66,
      by_category: { crawler: 44, unnamed: 22 },
      verified: 2,
      blocked: 1,
    },
  } as unknown as Parameters<typeof summaryOf>[0]
  assert.equal(
    summaryOf(statistics),
    '100 requests, 66 % of them from agents: 44 % from 3 named agents (1 new), 22 % from agents without a name. 2 verified, 1 blocked.',
  )
  assert.match(
    summaryOf({ ...statistics, agents: { ...statistics.agents, new: null } }),
    /44 % from 3 named agents, 22 %/,
  )
  const people = { ...statistics.detection, agents: 0, by_category: {}, verified: 0 }
  assert.equal(
    summaryOf({ ...statistics, detection: people }),
    '100 requests, 0 % of them from agents. 0 verified, 1 blocked.',
  )
})

test('of a burst of requests, only those that are shown are parsed, newest first', async () => {
  const unread = Array.from({ length: 300 }, () => ({ event: 'request', data: 'not parsed', id: '' }))
  const shown = Array.from({ length: 50 }, (_, at) => ({ event: 'request', data: `{"id":"${at}"}`, id: '' }))
  const skipped = { event: 'skipped', data: '{"requests":7}', id: '' }
  const fed = fedWith({ requests: [], skipped: 1 }, [...unread, skipped, ...shown])
  assert.deepEqual(
    fed.requests.map(({ id }) => Number(id)),
    Array.from({ length: 50 }, (_, at) => 49 - at),
  )
  assert.equal(fed.skipped, 8)
  const again = fedWith(fed, [shown[0]!, { event: 'request', data: '{"id":"50"}', id: '' }])
  assert.deepEqual(
    again.requests.map(({ id }) => Number(id)),
    Array.from({ length: 50 }, (_, at) => 50 - at),
  )
})
