import assert from 'node:assert/strict'
import { test } from 'tap'
import { AppIndex } from '../../src/apps/app-index.ts'
import { UNKNOWN } from '../../src/classify/verdict/verdict.ts'
import type { BlockAction } from '../../src/policy/action.ts'
import { HostGate, type HostSettings } from '../../src/proxy/request/host-gate.ts'
import type { DecisionId } from '../../src/proxy/connection/decision-id.ts'
import { FAILURE_STATUS } from '../../src/proxy/upstream/forward.ts'
import type { Judged } from '../../src/proxy/request/judge.ts'
import { type Bar, barOf } from '../../src/proxy/request/bar.ts'
import { blocked, unserved } from '../../src/proxy/request/refusals.ts'
import { type RefusalAnswer, refusalParts, refuse } from '../../src/proxy/request/refuse.ts'
import { NO_HOP } from '../../src/proxy/connection/request-headers.ts'
import { MemoryExchange } from './memory-exchange.ts'
import { ANY_HOST } from './test-gate.ts'
import { headerRules } from './test-headers.ts'

const ID = '019aa4bb-1c00-7000-8000-0123456789ab' as DecisionId
const BLOCK: BlockAction = { kind: 'block', status: 403, body: null, title: null }
const PAGE = 'text/html; charset=utf-8'
const PROBLEM = 'application/problem+json'

const JUDGED: Judged = {
  id: ID,
  received: { kept: [], forged: [], hop: NO_HOP, oddNames: 0 },
  address: '192.0.2.1',
  app: new AppIndex([]).appOf(''),
  print: { connection: new MemoryExchange().connection.print, ja4h: null },
  verdict: UNKNOWN,
  bar: null,
  overLimitMs: 0,
  mcp: null,
  decision: { action: BLOCK, rule: 'a rule', layer: 'last', wouldHave: null },
}

test('people get a page, and programs problem+json, by what they accept', async () => {
  const cases: readonly [accept: readonly string[], type: string][] = [
    [[], PROBLEM],
    [['*/*'], PROBLEM],
    [['text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'], PAGE],
    [['TEXT/HTML'], PAGE],
    [['text/*'], PAGE],
    [['text/html; charset=utf-8'], PAGE],
    [['application/json, text/plain, */*'], PROBLEM],
    [['application/json, text/html;q=0.5'], PROBLEM],
    [['application/problem+json, text/html;q=0.5'], PROBLEM],
    [['application/json;q=0.5, text/html'], PAGE],
    [['application/json;q=0.5, text/html;q=0.9'], PAGE],
    [['text/html;q=0, */*'], PROBLEM],
    [['text/html;q=0.0'], PROBLEM],
    [['text/html;q=nonsense'], PROBLEM],
    [['text/plain', 'text/html'], PAGE],
    [['application/text/html-ish'], PROBLEM],
    [[',;,=;q,;;'], PROBLEM],
  ]
  for (const [accept, type] of cases) {
    const rawHeaders = accept.flatMap((value) => ['aCCept', value])
    const exchange = answered({ rawHeaders }, blocked(JUDGED, BLOCK, 0))
    assert.equal(exchange.status, 403)
    assert.equal(headerOf(exchange, 'Content-Type'), type, accept.join())
    assert.equal(headerOf(exchange, 'X-Agent-Decision-Id'), ID)
    assert.equal(headerOf(exchange, 'Cache-Control'), 'no-store')
    assert.equal(headerOf(exchange, 'X-Content-Type-Options'), 'nosniff')
    assert.ok(exchange.text.includes(ID))
    const parts = refusalParts(rawHeaders, blocked(JUDGED, BLOCK, 0))
    assert.deepEqual(parts.headers, exchange.headers)
    assert.equal(parts.body.toString(), exchange.text)
  }
})

test('problem+json says what it is, for programs (RFC 9457)', async () => {
  const exchange = answered({}, blocked(JUDGED, { ...BLOCK, status: 451 }, 0))
  assert.deepEqual(JSON.parse(exchange.text), {
    ...{ type: 'about:blank', title: 'Unavailable For Legal Reasons', status: 451 },
    ...{ detail: 'This request is not allowed here.', code: 'blocked', decision_id: ID },
  })
})

test('an operator’s own words are sent as they are, and cannot become markup of ours', async () => {
  const cases: readonly [body: string, type: string][] = [
    ['Nein, danke: <b>grüße</b>', 'text/plain; charset=utf-8'],
    ['{"error": "ø"}', 'application/json'],
    ['', 'text/plain; charset=utf-8'],
  ]
  for (const [body, type] of cases) {
    for (const accept of ['text/html', 'application/json']) {
      const exchange = answered({ rawHeaders: ['Accept', accept] }, blocked(JUDGED, { ...BLOCK, body }, 0))
      assert.equal(Buffer.concat(exchange.chunks).toString(), body)
      assert.equal(headerOf(exchange, 'Content-Type'), type)
      assert.equal(headerOf(exchange, 'Content-Length'), String(Buffer.byteLength(body)))
      assert.equal(exchange.length, Buffer.byteLength(body))
    }
  }
  const title = `<script>alert("1") & 'so on'</script>`
  const page = answered({ rawHeaders: ['Accept', 'text/html'] }, blocked(JUDGED, { ...BLOCK, title }, 0))
  assert.ok(!page.text.includes('<script>'))
  assert.match(
    page.text,
    /<title>&#60;script&#62;alert\(&#34;1&#34;\) &#38; &#39;so on&#39;&#60;\/script&#62;</,
  )
  const problem = answered({}, blocked(JUDGED, { ...BLOCK, title }, 0))
  assert.equal(JSON.parse(problem.text).title, title)
})

test('HEAD is told how long the answer would be, and gets none', async () => {
  const asked = answered({}, blocked(JUDGED, BLOCK, 0))
  const exchange = answered({ method: 'HEAD' }, blocked(JUDGED, BLOCK, 0))
  assert.deepEqual([exchange.text, exchange.length], ['', 0])
  assert.deepEqual(exchange.headers, asked.headers)
})

test('an answer that has begun is broken off instead', async () => {
  const exchange = new MemoryExchange()
  exchange.answer(200, [], null)
  refuse(exchange, blocked(JUDGED, BLOCK, 0))
  assert.equal(exchange.isAborted, true)
  assert.deepEqual(exchange.wrongs, [])
})

test('a client over a limit is told when to retry, in whole seconds and not too early', async () => {
  const limit: BlockAction = { ...BLOCK, status: 429 }
  for (const [waitMs, seconds] of [
    [1, '1'],
    [1000, '1'],
    [1001, '2'],
    [86_400_000, '86400'],
  ] as const) {
    assert.deepEqual(blocked(JUDGED, limit, waitMs).headers, ['Retry-After', seconds])
  }
  const { status, code, headers } = blocked(JUDGED, { kind: 'tarpit', delayMs: 1, connectionsMax: 1 }, 1500)
  assert.deepEqual([status, code, headers], [429, 'rate_limited', ['Retry-After', '2']])
  assert.equal(blocked(JUDGED, { kind: 'tarpit', delayMs: 1, connectionsMax: 1 }, 0).status, 403)
  assert.deepEqual(blocked(JUDGED, limit, 0).headers, [])
})

test('each way in which an upstream fails has a status and a code of its own', async () => {
  const codes = new Set<string>()
  for (const [reason, status] of Object.entries(FAILURE_STATUS)) {
    const outcome = { kind: 'failed', reason, status, target: null } as Parameters<typeof unserved>[1]
    const refusal = unserved(JUDGED, outcome)
    assert.equal(refusal.status, status)
    assert.match(refusal.code, reason === 'bad-request' ? /^bad_request$/ : /^upstream_[a-z_]+$/)
    codes.add(refusal.code)
  }
  assert.equal(codes.size, Object.keys(FAILURE_STATUS).length)
})

test('settings refuse clients that the policy allows', async () => {
  const { connection } = new MemoryExchange()
  const known = {
    ...JUDGED,
    print: { ...JUDGED.print, connection: { ...connection.print, ja4: 'x' } },
  } as Judged
  const gate = (changes: Partial<HostSettings>) => HostGate.for({ ...ANY_HOST, ...changes }, () => undefined)
  const strict = {
    fail: 'closed',
    hostGate: gate({ sniMismatch: 'reject', requireSni: true }),
    headerRules: headerRules({ oddNames: 'refuse' }),
  } as const
  const lax = { fail: 'open', hostGate: gate({}), headerRules: headerRules() } as const
  type Context = Parameters<typeof barOf>[0]
  const barFor = (context: Context, changes: object, authority: string, judged = known, oddNames = 0) =>
    barOf(context, { ...connection, ...changes }, authority, judged.print, oddNames)
  assert.equal(barFor(strict, {}, 'app.example.test', JUDGED), 'no-fingerprint')
  assert.equal(barFor(strict, { isTls: false }, 'app.example.test', JUDGED), null)
  assert.equal(barFor(lax, {}, 'app.example.test', JUDGED), null)
  assert.equal(barFor({ ...strict, hostGate: null }, {}, 'app.example.test', known, 1), 'odd-header-name')
  assert.equal(barFor(lax, {}, 'app.example.test', known, 1), null)
  const hosts: readonly [serverName: string | null, authority: string, bar: Bar | null][] = [
    ['app.example.test', 'APP.example.test:8443', null],
    ['App.example.test', 'app.example.test', null],
    ['app.example.test', 'other.example.test', 'misdirected'],
    ['app.example.test', 'app.example.test.evil.example', 'misdirected'],
    ['app.example.test', '[2001:db8::1]', 'misdirected'],
    ['app.example.test', '[2001:db8::1]:443', 'misdirected'],
    ['app.example.test', 'app.example.test.', null],
    ['app.example.test.', 'app.example.test', null],
    [null, 'other.example.test', 'no-server-name'],
  ]
  for (const [serverName, authority, bar] of hosts) {
    assert.equal(barFor(strict, { serverName }, authority), bar, `${serverName} ${authority}`)
    assert.equal(barFor(lax, { serverName }, authority), null)
  }
  assert.equal(barFor(strict, { isTls: false, serverName: null }, 'other.example.test'), null)
})

function answered(
  request: ConstructorParameters<typeof MemoryExchange>[0],
  refusal: RefusalAnswer,
): MemoryExchange {
  const exchange = new MemoryExchange(request)
  refuse(exchange, refusal)
  assert.deepEqual(exchange.wrongs, [])
  assert.deepEqual(exchange.endTrailers, [])
  return exchange
}

function headerOf({ headers }: MemoryExchange, name: string): string | undefined {
  return headers[headers.indexOf(name) + 1]
}
