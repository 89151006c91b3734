import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { memoryIo } from './memory-io.ts'

const POLICY = `rules:
  - {name: open, when: {path: /robots.txt}, action: pass}
  - {name: trial, when: {method: POST}, action: tarpit, dry_run: true}
  - {name: crawlers, when: {category: crawler, not: {verified: true}}, action: {block: {status: 451, title: No}}}
  - {name: limit, when: {host: limit.test}, action: {rate_limit: {per: address, requests: 6, window: 1m}}}
  - {name: away, when: {host: away.test}, action: {redirect: {to: /docs}}}
  - {name: hold, when: {host: hold.test}, action: {tarpit: {delay: 2s}}}
  - {name: route, when: {host: route.test}, action: {route: {upstream: other}}}
otherwise: {tag: {headers: {X-Agent-Plan: free}}}
`
const CRAWLER = `{
  "method": "POST", "path": "/api/items?x=1", "address": "192.0.2.7",
  "headers": [["Host", "shop.test"], ["Accept", "application/json"], ["X-Agent-Verdict", "human\\u001b[31m"]],
  "verdict": {"kind": "agent", "agent": {"id": "gptbot", "name": "GPTBot", "category": "crawler"}, "confidence": 0.9}
}`
const CHROME =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36'

test('what a policy does to a request, rule by rule', async (t) => {
  const { at, check } = workbench(t)
  const { exitCode, out, err } = await check(at('r.json', CRAWLER), at('p.yaml', POLICY))
  assert.deepEqual([exitCode, err], [0, ''])
  for (const line of [
    'request  POST shop.test/api/items?x=1 from 192.0.2.7',
    'verdict  agent, agent gptbot (crawler), confidence 0.9, not verified (given with the request)',
    'open       no   path is /api/items, expected /robots.txt',
    'trial      yes  matches, but is a dry run (dry_run)',
    'crawlers   yes  decides',
    'limit      no   host is shop.test, expected limit.test',
    'block, by rule "crawlers"',
    'but for its dry_run, rule "trial" would have decided: tarpit',
    'The app gets nothing. The client gets:',
    '  HTTP/1.1 451 Unavailable For Legal Reasons',
    '  Content-Type: application/problem+json',
  ])
    assert.ok(out.split('\n').includes(line), `${line}\n${out}`)
})

test('a rule for an alias holds for the agent, given by any of its names; an unknown one is warned of', async (t) => {
  const { at, check } = workbench(t)
  const policy = at(
    'p.yaml',
    'rules: [{name: sdk, when: {agent: openai-python}, action: block}, {name: typo, when: {agent: gptbto}, action: block}]',
  )
  for (const agent of ['openai-python', 'openai-sdk-python', 'OpenAI_Python']) {
    const request = JSON.stringify({ verdict: { kind: 'agent', agent } })
    const { out, err } = await check(at('r.json', request), policy)
    assert.match(out, /^sdk +yes {2}decides$/m, agent)
    assert.match(err, /^warning: \S+p\.yaml:1:\d+: rule "typo": when\.agent: unknown agent "gptbto"/)
  }
})

test('the app gets the signer and the conflict as the file states them', async (t) => {
  const { at, check } = workbench(t)
  const policy = at(
    'p.yaml',
    'rules: [{name: partner, when: {signer: "https://*.test", verified: web-bot-auth}, action: tag}]',
  )
  const signed = {
    kind: 'agent',
    verified: 'web-bot-auth',
    signer: 'https://a.test',
    evidence: ['signed-as-another'],
  }
  const { out } = await check(at('r.json', JSON.stringify({ verdict: signed })), policy)
  assert.match(out, /^verdict {2}agent, .*verified by web-bot-auth: https:\/\/a\.test/m)
  assert.match(out, /^partner +yes +decides$/m)
  assert.match(out, /^ {2}X-Agent-Identity: https:\/\/a\.test$/m)
  assert.match(out, /^ {2}X-Agent-Conflict: signed-as-another$/m)
  for (const [verdict, problem] of [
    [{ ...signed, signer: undefined }, /needs `signer`/],
    [{ ...signed, verified: 'ip-range' }, /signer: is allowed only with `verified: web-bot-auth/],
    [{ ...signed, verified: 'by-word' }, /expected web-bot-auth, ip-range, reverse-dns/],
  ] as const)
    assert.match((await check(at('r.json', JSON.stringify({ verdict })), policy)).err, problem)
})

test('an address that the claimed agent publishes is a proof, and any other is not', async (t) => {
  const { at, check } = workbench(t)
  const userAgent = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)'
  const from = (address: string) =>
    at('r.json', JSON.stringify({ method: 'POST', address, headers: { 'User-Agent': userAgent } }))
  const proven = await check(from('66.249.66.1'), at('p.yaml', POLICY))
  assert.match(
    proven.out,
    /^verdict {2}agent, agent googlebot \(crawler\), purpose search, .*, verified by ip-range \(classified/m,
  )
  assert.match(
    proven.out,
    /^ {9}address-published +\+\d\.\d\d {2}the address is in the published ranges of Googlebot \(\S+, \S+, /m,
  )
  assert.match(proven.out, /^crawlers +no {3}not .*verified/m)
  assert.match(proven.out, /^ {2}X-Agent-Verified: ip-range$/m)
  for (const address of ['198.51.100.7', '127.0.0.1', 'unknown']) {
    const claimed = await check(from(address), at('p.yaml', POLICY))
    assert.match(
      claimed.out,
      /^verdict {2}agent, agent googlebot \(crawler\), .*, not verified \(classified/m,
    )
    assert.match(claimed.out, /^crawlers +yes {2}decides$/m)
  }
})

test('explains a signed request whose key is unknown', async (t) => {
  const { at, check } = workbench(t)
  const request = at(
    'r.json',
    JSON.stringify({ headers: { 'Signature-Input': 'sig1=();tag="web-bot-auth"' } }),
  )
  const passing = await check(request, at('p.yaml', POLICY))
  assert.match(
    passing.out,
    /^signed {3}not checked here; .* decides at once and treats the signature as unchecked$/m,
  )
  const waiting = at('w.yaml', `${POLICY}unknown_signer: {wait: 1s}\n`)
  assert.match((await check(request, waiting)).out, /^signed {3}.* the proxy waits up to 1000 ms for it$/m)
  assert.deepEqual(JSON.parse((await check(request, waiting, ['--json'])).out).unknown_signer, {
    wait_ms: 1000,
  })
  const unsigned = await check(at('u.json', '{}'), waiting)
  assert.ok(!unsigned.out.includes('signed'), unsigned.out)
})

test('what the app or the client sees of each action', async (t) => {
  const { at, check } = workbench(t)
  const policy = at('p.yaml', POLICY)
  const SEES: readonly (readonly [request: string, ...lines: readonly string[]])[] = [
    [
      '{"path": "/robots.txt"}',
      'pass, by rule "open"',
      'The app gets the request, with X-Forwarded-*, X-Real-IP and Forwarded and nothing else of ours.',
    ],
    [
      '{"host": "x.test", "ja4": "t13d1516h2_8daaf6152771_e5627efa2ab1", "verdict": {"kind": "unknown"}}',
      'tag, by otherwise',
      '  X-Agent-Plan: free',
      '  X-Agent-Verdict: unknown',
      '  X-JA4-Fingerprint: t13d1516h2_8daaf6152771_e5627efa2ab1',
      'otherwise  yes  decides: no rule matches',
    ],
    [
      '{"host": "limit.test"}',
      'Up to 6 in 60000 ms, 6 at once, for each address, the app gets the request, with:',
      'Over that: The app gets nothing. The client gets:',
      '  HTTP/1.1 429 Too Many Requests',
      '  Retry-After: 10',
    ],
    ['{"host": "away.test"}', '  HTTP/1.1 302 Found', '  Location: /docs'],
    [
      '{"host": "hold.test", "headers": {"Accept": "text/html"}}',
      'The app gets nothing. The client waits for 2000 ms, unless 100 wait already, and gets:',
      '  (a page)',
    ],
    ['{"host": "route.test"}', 'The upstream other gets the request, with:', '  X-Agent-Action: route'],
  ]
  for (const [request, ...lines] of SEES) {
    const { out } = await check(at('r.json', request), policy)
    for (const line of lines) assert.ok(out.split('\n').includes(line), `${line}\n${out}`)
  }
})

test('the verdict is made of the request where the file has none', async (t) => {
  const { at, check } = workbench(t)
  const policy = at(
    'p.yaml',
    `rules:
  - {name: spoofed, when: {evidence: spoofed-browser}, action: block}
  - {name: tools, when: {verdict: automation}, action: block}
  - {name: gptbot, when: {agent: gptbot}, action: pass}
`,
  )
  const SAYS: readonly (readonly [request: string, ...lines: readonly RegExp[]])[] = [
    [
      '{"headers": {"User-Agent": "curl/8.5.0", "Accept": "*/*"}}',
      /^verdict {2}automation, software curl, confidence 0\.\d+, name confidence 0\.72, not verified \(classified from the request\)$/m,
      /^ {9}names-tool +\+\d+\.\d\d {2}the User-Agent names curl$/m,
      /^block, by rule "tools"$/m,
    ],
    [
      '{"headers": {"User-Agent": "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"}}',
      /^verdict {2}agent, agent gptbot \(crawler\), purpose training, confidence 0\.\d+, name confidence 0\.5, not verified /m,
      /^pass, by rule "gptbot"$/m,
    ],
    [
      `{"headers": {"User-Agent": "${CHROME}", "Accept": "*/*"}}`,
      /^verdict {2}agent, confidence /m,
      /^ {9}spoofed-browser .*client-hints-missing/m,
      /^block, by rule "spoofed"$/m,
    ],
  ]
  for (const [request, ...expected] of SAYS) {
    const { out, err } = await check(at('r.json', request), policy)
    for (const line of expected) assert.match(out, line, err)
  }
  const { out } = await check(at('r.json', SAYS[0]![0]), policy, ['--json'])
  const { verdict } = JSON.parse(out)
  assert.equal(verdict.assumed, false)
  assert.equal(
    verdict.evidence.find(({ kind }: { kind: string }) => kind === 'names-tool').detail,
    'the User-Agent names curl',
  )
})

const HEAD = `POST /api/items?x=1 HTTP/1.1
Host: shop.test
User-Agent: curl/8.5.0
Accept: */*

not: a header
`

test('explains a pasted request head like the same request as JSON', async (t) => {
  const { at, check } = workbench(t)
  const policy = at('p.yaml', POLICY)
  const headers = [
    ['Host', 'shop.test'],
    ['User-Agent', 'curl/8.5.0'],
    ['Accept', '*/*'],
  ]
  const described = { method: 'POST', path: '/api/items?x=1', http: '1.1', headers }
  const json = async (text: string, more: readonly string[] = []) => {
    const { exitCode, out, err } = await check(at('r', text), policy, ['--json', ...more])
    assert.deepEqual([exitCode, err], [0, ''])
    return JSON.parse(out)
  }
  const expected = await json(JSON.stringify(described))
  assert.equal(expected.verdict.kind, 'automation')
  const curl = HEAD.trimEnd()
    .split('\n')
    .slice(0, 5)
    .map((line) => `> ${line}`)
  for (const text of [
    HEAD,
    `\n${HEAD.replaceAll('\n', '\r\n')}`,
    HEAD.replace('/api', 'https://shop.test/api'),
    ['* Connected', ...curl, '< HTTP/1.1 200 OK', '< X: y'].join('\n'),
  ])
    assert.deepEqual(await json(text), expected, text)
  const ja4 = 't13d1516h2_8daaf6152771_e5627efa2ab1'
  assert.deepEqual(
    await json(HEAD, ['--ja4', ja4, '--address', '192.0.2.7']),
    await json(JSON.stringify({ ...described, ja4, address: '192.0.2.7' })),
  )
})

test('explains a request head of HTTP/2 from standard input', async (t) => {
  const { check } = workbench(t)
  const head = 'GET /a HTTP/2\n:authority: shop.test\n:method: GET\nuser-agent: curl/8.5.0\n'
  const { exitCode, out, err } = await check('-', null, [], head)
  assert.deepEqual([exitCode, err], [0, ''])
  assert.match(out, /^request {2}GET shop\.test\/a$/m)
  assert.match(out, /^verdict {2}automation, software curl, .* \(classified from the request\)$/m)
})

test('refuses a request without end', async (t) => {
  const { check } = workbench(t)
  for (const [file, stdin, name] of [
    ['/dev/zero', '', '/dev/zero'],
    ['-', 'A: b\n'.repeat(300_000), 'stdin'],
  ] as const) {
    const { exitCode, err } = await check(file, null, [], stdin)
    assert.deepEqual([exitCode, err], [1, `gatehouse check: ${name}: is longer than 1048576 bytes\n`])
  }
})

test('reports the problems of a request head with their lines and options', async (t) => {
  const { at, check } = workbench(t)
  const problems = async (text: string, ...more: readonly string[]) => {
    const { exitCode, out, err } = await check(at('r.http', text), null, more)
    assert.deepEqual([exitCode === 0, out], [false, ''])
    return err.trimEnd().split('\n')
  }
  const odd = await problems('GET / HTTP/1.1\nHost: a\nodd\nA: b\n odder\n')
  assert.equal(odd.length, 2)
  assert.match(odd[0]!, /r\.http:3:1: is not a header; expected Name: value$/)
  assert.match(odd[1]!, /r\.http:5:1: is not a header/)
  const wrong = await problems('get * HTTP/3\n\n', '--ja4', 'x')
  assert.equal(wrong.length, 4, wrong.join('\n'))
  assert.ok(
    wrong.some((line) => line.includes('--ja4: ja4: "x" is not a valid ja4')),
    wrong.join('\n'),
  )
  for (const what of [/:1:1: method: .*GET/, /:1:1: path: .*start with/, /:1:1: http: .*1\.1 or 2/])
    assert.ok(
      wrong.some((line) => what.test(line)),
      wrong.join('\n'),
    )
  assert.match((await problems('GET / HTTP/1.1\nA: b\nHost: a b\n'))[0]!, /r\.http:3:1: .*valid host/)
  for (const option of ['--ja4', '--address'])
    assert.match((await problems('{}', option, 'x'))[0]!, /--ja4 and --address go with a request head/)
})

test('over which HTTP it came', async (t) => {
  const { at, check } = workbench(t)
  const headers = Object.entries({ 'user-agent': CHROME, accept: 'text/html' })
  const evidenceOf = async (more: string) => {
    const text = `headers: ${JSON.stringify(headers)}\n${more}`
    return (await check(at('r.yaml', text), null)).out.match(/header-case-odd/)?.[0] ?? 'none'
  }
  // Over HTTP/1 no browser sends names in lower case; over HTTP/2 all do.
  assert.equal(await evidenceOf(''), 'header-case-odd')
  assert.equal(await evidenceOf('http: 1.1\nja4: t13d1516h2_8daaf6152771_e5627efa2ab1\n'), 'header-case-odd')
  assert.equal(await evidenceOf('http: "2"\n'), 'none')
  assert.equal(await evidenceOf('http: 2\n'), 'none')
  assert.equal(await evidenceOf('ja4: t13d1516h2_8daaf6152771_e5627efa2ab1\n'), 'none')
  assert.equal(await evidenceOf('http2: "1:65536;3:100|15663105|0|m,a,s,p"\n'), 'none')
})

test("the operator's own signatures are taken from the configuration", async (t) => {
  const { at, check } = workbench(t)
  at(
    'own.yaml',
    `- id: house-robot
  name: House Robot
  kind: agent
  category: custom
  signatures:
    - {user_agent: house-robot, source: own, date: 2026-01-02}
`,
  )
  const config = at(
    'g.yaml',
    'proxy: {upstreams: [{name: app, urls: http://a}]}\nsignatures: [own.yaml]\ndata: {dir: data}\n',
  )
  const file = at('r.json', '{"headers": {"User-Agent": "house-robot/2"}}')
  assert.match((await check(file, null)).out, /^verdict {2}(?!agent, agent house-robot)/m)
  const { out, err } = await check(file, null, ['--config', config])
  assert.match(out, /^verdict {2}agent, agent house-robot \(custom\), confidence /m, err)
})

test('without a policy everything is tagged; one that the configuration names is taken', async (t) => {
  const { at, check } = workbench(t)
  const file = at('r.json', CRAWLER)
  assert.match((await check(file, null)).out, /^policy {3}no policy: everything is tagged$/m)
  at('p.yaml', POLICY)
  const config = at('g.yaml', 'proxy: {upstreams: [{name: other, urls: http://a}]}\npolicy: {file: p.yaml}\n')
  assert.match((await check(file, null, ['--config', config])).out, /^block, by rule "crawlers"$/m)
})

test('as JSON', async (t) => {
  const { at, check } = workbench(t)
  const { out } = await check(at('r.json', CRAWLER), at('p.yaml', POLICY), ['--json'])
  const { rules, decision, effects, verdict } = JSON.parse(out)
  assert.deepEqual([verdict.kind, verdict.assumed, rules.length, rules[2].decides], ['agent', true, 7, true])
  assert.deepEqual(rules[0].conditions, [
    { name: 'path', takes: '/robots.txt', holds: false, seen: '/api/items' },
  ])
  assert.deepEqual(
    [decision.rule, decision.action.status, decision.would_have.rule],
    ['crawlers', 451, 'trial'],
  )
  assert.equal(effects[0].lines[0], 'HTTP/1.1 451 Unavailable For Legal Reasons')
})

test('what a terminal would obey is shown, not passed on', async (t) => {
  const { at, check } = workbench(t)
  const request =
    '{"path": "/\\u001b[31m", "address": "\\u001b]0;x", "verdict": {"kind": "agent", "agent": "\\u009bx"}}'
  const { out } = await check(at('r.json', request), at('p.yaml', POLICY))
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what must not be there
  assert.ok(!/[\x00-\x09\x0b-\x1f\x7f-\x9f]/.test(out), out)
})

test('what is wrong with a request: all of it, and where', async (t) => {
  const { at, check } = workbench(t)
  const file = at(
    'r.yaml',
    `metod: GET
path: x
headers: [[a], ["b c", d], [e, 1], [f, "g\\nh"]]
hello: none
http: 3
verdict: {confidence: 2, agent: {name: x}}
`,
  )
  const { exitCode, out, err } = await check(file, null)
  assert.deepEqual([exitCode, out], [1, ''])
  for (const problem of [
    ':1:1: metod: unknown field (did you mean "method"?)',
    ':2:1: path: is "x"; a path must start with /',
    ': headers[0]: must be a name and a value',
    ': headers[1][1]: "b c" is not a valid header name',
    ': headers[2][1]: must be text, as it was sent',
    ': headers[3][1]: a header value must be a single line',
    ':4:1: hello: is "none"; expected malformed, not-tls',
    ':5:1: http: is 3; expected 1.1 or 2',
    ': verdict: needs `kind`',
    ': verdict.agent: needs `id`',
    ': verdict.confidence: is 2; expected a number from 0 to 1',
  ])
    assert.ok(err.includes(problem), `${problem}\n${err}`)
})

test('a request that the proxy refuses is refused', async (t) => {
  const { at, check } = workbench(t)
  for (const [request, problem] of [
    ['{"method": "post"}', 'method: is "post"; the proxy refuses it (400): write POST'],
    ['{"method": "Version-Control"}', 'the proxy refuses it (400): write VERSION-CONTROL'],
    ['{"host": "u@shop.example"}', 'host: "u@shop.example" is not a valid host; the proxy refuses it (400)'],
    ['{"headers": {"Host": "shop.example.."}}', 'headers: "shop.example.." is not a valid host'],
    ['{"method": "GET /"}', 'method: "GET /" is not a valid method'],
  ] as const) {
    const { exitCode, err } = await check(at('r.json', request), null)
    assert.equal(exitCode, 1)
    assert.ok(err.includes(problem), err)
  }
  assert.equal((await check(at('r.json', '{"method": "purge"}'), null)).exitCode, 0)
})

test('files that cannot be read, and policies that cannot be used', async (t) => {
  const { at, check } = workbench(t)
  const good = at('r.json', '{}')
  const missing = await check('/there/is/none.json', null)
  assert.deepEqual([missing.exitCode, missing.out], [1, ''])
  assert.match(missing.err, /\/there\/is\/none\.json: no such file/)
  const bad = await check(
    good,
    at('p.yaml', 'rules:\n  - {name: a, when: "request.pth == 1", action: block}\n'),
  )
  assert.equal(bad.exitCode, 1)
  assert.match(bad.err, /p\.yaml:2:15: rule "a": when: character 1: unknown field request\.pth/)
})

function workbench(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-explain-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return {
    at(name: string, text: string): string {
      const file = join(folder, name)
      writeFileSync(file, text)
      return file
    },
    async check(request: string, policy: string | null, more: readonly string[] = [], stdin = '') {
      const io = memoryIo(stdin)
      const named = policy === null ? [] : ['--policy', policy]
      const exitCode = await runCli(COMMANDS, ['check', '--explain', request, ...named, ...more], io)
      return { exitCode, out: io.out, err: io.err }
    },
  }
}
