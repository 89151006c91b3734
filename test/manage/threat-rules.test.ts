import assert from 'node:assert/strict'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'tap'
import type { Knowledge } from '../../src/classify/known/knowledge.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { anomalyIn } from '../../src/manage/events/threats/rate-anomaly.ts'
import { RobotsFiles } from '../../src/manage/events/threats/robots-files.ts'
import { RobotsTxt } from '../../src/terms/robots-txt.ts'
import type { RobotsRules } from '../../src/manage/events/threats/rule.ts'
import { RULES } from '../../src/manage/events/threats/rules.ts'
import { REASONS } from '../../src/manage/events/threats/threat.ts'
import { SILENT } from '../contract/seen.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { quiet } from './event-sources.ts'

const ROBOTS: RobotsRules = {
  disallowing: (agent, _host, path) =>
    agent === 'gptbot' && path.startsWith('/private/') ? 'Disallow: /private/' : null,
}
let KNOWLEDGE: Knowledge | null = null
const FOREIGN = 'it claims to be an agent, but its address is not one that the agent’s vendor publishes'
const SIGNER = { verified: 'web-bot-auth', signer: 'https://a.test', key: 'k1' }
const BROKEN = { signatureFault: 'expired', allegedSigner: 'https://a.test' }
const CONTRADICTED = 'it proved which agent it is, but its TLS or its address belongs to another client'
const END_MS = Date.UTC(2026, 10, 20, 15, 40)
const MINUTE_MS = 60_000

function knowing(): Knowledge {
  const list = [{ id: 'gptbot', robotsToken: 'GPTBot' }] as unknown as Knowledge['list']
  KNOWLEDGE ??= { list } as Knowledge
  return KNOWLEDGE
}

test('what a request shows is a threat, or none', async () => {
  const crawler = { verdict: 'agent', agent: 'gptbot', category: 'crawler', path: '/private/a' }
  const cases: readonly [changes: Partial<Sighting>, threats: Readonly<Record<string, string>>][] = [
    [{}, {}],
    [{ action: 'block', dryRun: true, done: 'tag' }, {}],
    [{ action: 'rate_limit', done: 'rate_limit' }, {}],
    [{ done: 'redirect', action: 'redirect' }, {}],
    [{ evidence: ['names-browser', 'stack-disagrees'], verdict: 'unknown' }, {}],
    [
      { evidence: ['spoofed-browser', 'names-browser', 'stack-disagrees'], verdict: 'automation' },
      { spoofed_browser: 'it claims to be a browser, but its fingerprints or headers contradict that' },
    ],
    [
      { evidence: ['names-agent', 'address-foreign'] },
      {
        foreign_address: FOREIGN,
      },
    ],
    [{ evidence: ['names-agent', 'address-published'] }, {}],
    [{ evidence: ['host-foreign', 'names-agent'] }, { foreign_address: FOREIGN }],
    [{ evidence: ['host-proven', 'signature-proven', 'signature-unchecked'] }, {}],
    [
      { evidence: ['signature-failed'], ...BROKEN },
      {
        proof_failed:
          'it claims to be signed by https://a.test, but the signature is invalid: it has expired',
      },
    ],
    [
      { evidence: ['signature-failed'], signatureFault: 'of tomorrow' },
      { proof_failed: 'it is signed, but the signature is invalid: of tomorrow' },
    ],
    [{ evidence: ['signature-unchecked'], ...BROKEN, signatureFault: 'no-key-yet' }, {}],
    [
      { evidence: ['signature-proven', 'signed-as-another'], ...SIGNER },
      { proof_failed: 'https://a.test signed it, but it claims to be another agent' },
    ],
    [{ evidence: ['signed-with-foreign-fingerprint'], ...SIGNER }, { proof_contradicted: CONTRADICTED }],
    [{ evidence: ['signed-from-foreign-address'], ...SIGNER }, { proof_contradicted: CONTRADICTED }],
    [{ evidence: ['network-foreign'] }, {}],
    [
      { forged: ['x-agent-name', 'x-agent-verified'] },
      { forged_headers: 'it sent headers that only the gateway sets: x-agent-name, x-agent-verified' },
    ],
    [
      { forged: [...'abcdefg'].map((each) => `x-agent-${each.repeat(100)}`) },
      {
        forged_headers: `it sent headers that only the gateway sets: ${[...'abcde']
          .map((each) => `x-agent-${each.repeat(56)}`)
          .join(', ')} and 2 more`,
      },
    ],
    [{ done: 'block', rule: 'no curl' }, { blocked: 'it was refused (block) by no curl' }],
    [{ done: 'tarpit', rule: 'slow' }, { blocked: 'it was refused (tarpit) by slow' }],
    [{ done: 'block', rule: 'on trial', dryRun: true }, { blocked: 'it was refused (block)' }],
    [{ done: 'rate_limit', limited: true, rule: 'few' }, { rate_limited: 'it was over the limit of few' }],
    [
      { ...crawler, evidence: ['names-agent'] },
      { robots_violation: 'robots.txt asks it not to: Disallow: /private/' },
    ],
    [
      { ...crawler, evidence: [], verified: 'ip-range' },
      { robots_violation: 'robots.txt asks it not to: Disallow: /private/' },
    ],
    [{ ...crawler, evidence: [] }, {}],
    [{ ...crawler, evidence: ['names-agent'], category: 'browser-agent' }, {}],
    [{ ...crawler, evidence: ['names-agent'], path: '/' }, {}],
    [
      { done: 'block', rule: 'all', evidence: ['address-foreign'], forged: ['x-agent-name'] },
      {
        foreign_address: FOREIGN,
        forged_headers: 'it sent headers that only the gateway sets: x-agent-name',
        blocked: 'it was refused (block) by all',
      },
    ],
  ]
  for (const [changes, threats] of cases) {
    const sighting = quiet(1, { evidence: [], ...changes })
    const found = RULES.filter((rule) => rule.holds(sighting, ROBOTS))
    assert.deepEqual(
      Object.fromEntries(found.map((rule) => [rule.reason, rule.detail(sighting, ROBOTS)])),
      threats,
    )
  }
  // Those that no request shows alone.
  const reasons = new Set([...RULES.map(({ reason }) => reason), 'rate_anomaly', 'crawl_campaign'])
  assert.deepEqual([...reasons].sort(), [...REASONS].sort())
})

test('robots.txt is read as RFC 9309 has it', async () => {
  const simple = RobotsTxt.forPaths(`User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
`)
  const longest = RobotsTxt.forPaths(`User-Agent: foobot
Allow: /example/page/
Disallow: /example/page/disallowed.gif`)
  const merged = RobotsTxt.forPaths(`\ufeffuser-agent: ExampleBot # a comment
disallow: /foo
disallow: /bar # this too
sitemap: https://example.test/map.xml
disallow:

User-agent: other/1.0\r\nDisallow: /\r\nUSER-AGENT: examplebot\rDisallow: /baz`)
  const special = RobotsTxt.forPaths(`disallow: /before
user-agent: a
disallow: /fish*/salmon
disallow: /*.php$
disallow: /100%25
disallow: /star-%2A-
disallow: /dollar-%24
allow: /shop?public
disallow: /shop
allow: /both
disallow: /both`)
  const encoded = RobotsTxt.forPaths(`user-agent: *
disallow: /foo/bar/ツ
disallow: /foo/baz/%E3%83%84
disallow: /foo/%62%61%7A/qux`)
  const cases: readonly [robots: RobotsTxt, token: string, path: string, line: string | null][] = [
    [simple, 'foobot', '/example/page.html', null],
    [simple, 'FooBot', '/example/allowed.gif', null],
    [simple, 'foobot', '/', 'Disallow:/'],
    [simple, 'foobot', '/robots.txt', null],
    [simple, 'foobot', '/publications/', 'Disallow:/'],
    [simple, 'barbot', '/example/page.html', 'Disallow: /example/page.html'],
    [simple, 'bazbot', '/example/page.html', 'Disallow: /example/page.html'],
    [simple, 'bazbot', '/example/a.gif', null],
    [simple, 'quxbot', '/example/', null],
    [simple, 'another', '/a.gif', 'Disallow: *.gif$'],
    [simple, 'another', '/a.gifs', null],
    [simple, 'another', '/example/', 'Disallow: /example/'],
    [longest, 'foobot', '/example/page/', null],
    [longest, 'foobot', '/example/page/disallowed.gif', 'Disallow: /example/page/disallowed.gif'],
    [longest, 'anybody', '/example/page/disallowed.gif', null],
    [merged, 'examplebot', '/foo', 'disallow: /foo'],
    [merged, 'examplebot', '/bart', 'disallow: /bar # this too'],
    [merged, 'examplebot', '/baz', 'Disallow: /baz'],
    [merged, 'examplebot', '/', null],
    [merged, 'other', '/', 'Disallow: /'],
    [special, 'a', '/before', null],
    [special, 'a', '/fisheries/and/salmon/x', 'disallow: /fish*/salmon'],
    [special, 'a', '/fish', null],
    [special, 'a', '/x.php', 'disallow: /*.php$'],
    [special, 'a', '/x.php5', null],
    [special, 'a', '/100%25', 'disallow: /100%25'],
    [special, 'a', '/star-*-x', 'disallow: /star-%2A-'],
    [special, 'a', '/star-x-x', null],
    [special, 'a', '/dollar-$', 'disallow: /dollar-%24'],
    [special, 'a', '/dollar-', null],
    // It may have been /shop?public: of the query nothing is known.
    [special, 'a', '/shop', null],
    [special, 'a', '/shop/1', 'disallow: /shop'],
    [special, 'a', '/both/1', null],
    [encoded, 'x', '/foo/bar/%E3%83%84', 'disallow: /foo/bar/ツ'],
    [encoded, 'x', '/foo/bar/%e3%83%84', 'disallow: /foo/bar/ツ'],
    [encoded, 'x', `/foo/bar/${Buffer.from('ツ').toString('latin1')}`, 'disallow: /foo/bar/ツ'],
    [encoded, 'x', '/foo/baz/%E3%83%84', 'disallow: /foo/baz/%E3%83%84'],
    [encoded, 'x', '/foo/baz/qux', 'disallow: /foo/%62%61%7A/qux'],
    [encoded, 'x', '/foo/b%61z/qux', 'disallow: /foo/%62%61%7A/qux'],
    [RobotsTxt.forPaths(''), 'x', '/', null],
    [RobotsTxt.forPaths('<html>\n<p style="disallow: /">'), 'x', '/', null],
  ]
  for (const [robots, token, path, line] of cases)
    assert.equal(robots.disallowing(token, path), line, `${token} ${path}`)
})

test('no robots.txt takes long', async () => {
  const stars = `user-agent: *\n${'disallow: /a*a*a*a*a*a*a*a*a*a*a*a*b\n'.repeat(2_000)}`
  const robots = RobotsTxt.forPaths(stars)
  const startedMs = performance.now()
  assert.equal(robots.disallowing('x', `/${'a'.repeat(1_000)}`), null)
  assert.ok(performance.now() - startedMs < 1_000)
})

test('a file that cannot be read any more stays in force, and a new one takes its place', async (t) => {
  const file = join(temporaryFolder(t), 'robots.txt')
  const files = new RobotsFiles({ file, upstream: null, isPublished: false }, knowing, SILENT)
  const line = () => files.disallowing('gptbot', 'a.example.test', '/x')
  let nowMs = 0
  const refresh = () => {
    nowMs += 60_000
    return files.refresh(nowMs)
  }
  await refresh()
  assert.equal(line(), null)
  writeFileSync(file, 'user-agent: gptbot\ndisallow: /x')
  await refresh()
  assert.equal(line(), 'disallow: /x')
  assert.equal(files.disallowing('claudebot', null, '/x'), null)
  rmSync(file)
  await refresh()
  assert.equal(line(), 'disallow: /x')
  writeFileSync(file, 'user-agent: *\ndisallow: /y')
  await refresh()
  assert.equal(line(), null)
  assert.equal(files.disallowing('gptbot', null, '/y'), 'disallow: /y')
})

test('the app is asked for the robots.txt of each host that crawlers ask for', async (t) => {
  const answers = new Map<string, [status: number, body: string]>()
  const asked: string[] = []
  const app = createServer((request, response) => {
    asked.push(`${request.headers.host}${request.url}`)
    const [status, body] = answers.get(request.headers.host!) ?? [404, 'user-agent: *\ndisallow: /']
    response.writeHead(status).end(body)
  }).listen(0, '127.0.0.1')
  await once(app, 'listening')
  t.teardown(() => app.close())
  const url = `http://127.0.0.1:${(app.address() as AddressInfo).port}`
  const tls = { verify: true, ca: null, serverName: null }
  const settings = { file: null, upstream: { url, host: 'preserve', tls }, isPublished: false } as const
  const files = new RobotsFiles(settings, knowing, SILENT)
  const line = (host: string) => files.disallowing('gptbot', host, '/x')
  const hosts = ['a.example.test', 'b.example.test:8443', 'none.example.test', 'A.example.test', 'not a host']
  answers.set('a.example.test', [200, 'user-agent: *\ndisallow: /x'])
  answers.set('b.example.test:8443', [503, ''])
  assert.deepEqual(hosts.map(line), [null, null, null, null, null])
  await files.refresh(1)
  assert.deepEqual(
    asked.sort(),
    hosts.slice(0, 3).map((host) => `${host}/robots.txt`),
  )
  assert.deepEqual(hosts.map(line), ['disallow: /x', null, null, 'disallow: /x', null])
  answers.set('a.example.test', [301, ''])
  answers.set('b.example.test:8443', [200, `user-agent: *\ndisallow: /x\n${'#'.repeat(2_000_000)}`])
  await files.refresh(60_001)
  assert.equal(asked.length, 4)
  assert.deepEqual(hosts.map(line), ['disallow: /x', 'disallow: /x', null, 'disallow: /x', null])
  await files.refresh(3_600_001)
  assert.deepEqual([asked.length, line('a.example.test')], [6, 'disallow: /x'])
})

test('an agent is anomalous by what is usual for it', async () => {
  const settings = { factor: 10, requestsMin: 300 }
  const anomaly = (current: number, past: readonly (readonly [minutesAgo: number, requests: number])[]) => {
    const minutes = new Map(past.map(([ago, requests]) => [END_MS - ago * MINUTE_MS, requests]))
    minutes.set(END_MS - MINUTE_MS, current)
    return anomalyIn(minutes, END_MS, settings)
  }
  const steady = (requests: number, from = 21, count = 12) =>
    Array.from({ length: count }, (_, at) => [from + at * 5, requests] as const)
  assert.deepEqual(anomaly(301, steady(30)), { requests: 301, usual: 30 })
  assert.equal(anomaly(300, steady(30)), null, 'not more than the factor')
  assert.equal(anomaly(299, steady(1)), null, 'too few')
  assert.equal(anomaly(10_000, steady(1, 21, 11)), null, 'too little is known of it')
  assert.equal(anomaly(10_000, [...steady(1, 21, 11), [8, 1]]), null, 'what is too much is not what is usual')
  assert.equal(anomaly(10_000, []), null)
  // One day of much more, or of nothing, does not move the median.
  assert.deepEqual(anomaly(500, [...steady(30), [300, 90_000], [310, 90_000]]), { requests: 500, usual: 30 })
  // What it does at this time of the day is usual, whatever it did lately.
  const yesterday = 24 * 60 - 30
  assert.equal(anomaly(500, [...steady(30), ...steady(60, yesterday)]), null)
  assert.deepEqual(anomaly(700, [...steady(30), ...steady(60, yesterday)]), { requests: 700, usual: 60 })
  assert.deepEqual(anomaly(500, [...steady(30), ...steady(60, 600)]), { requests: 500, usual: 30 })
})
