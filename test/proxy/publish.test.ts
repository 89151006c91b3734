import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type Test, test } from 'tap'
import { TermsPublisher, type PublishSettings } from '../../src/proxy/request/publish/terms-publisher.ts'
import { loadKnowledge } from '../../src/runtime/signatures/knowledge-files.ts'
import { RobotsTxt } from '../../src/terms/robots-txt.ts'
import { startGate } from './test-gate.ts'
import { settingsFor } from './upstream-fixture.ts'

const ALL: PublishSettings = { hasRobots: true, hasUsage: true, hasSignals: true, rslPath: '/license.xml' }
const POLICY = {
  rules: [
    { name: 'training', when: { purpose: 'training' }, action: 'block' },
    { name: 'only people', when: { method: 'GET', path: '/secret*', category: 'crawler' }, action: 'block' },
  ],
}

test('robots.txt has what the policy and the app say, also for crawlers that are refused', async (t) => {
  const { ask, asked, gate } = await publishing(t, (_, response) => {
    response.setHeader('Content-Type', 'text/plain')
    response.end('User-agent: *\nDisallow: /cart\n\nSitemap: https://a.test/sitemap.xml\n# caf\u00e9\n')
  })
  const answer = await ask('/robots.txt', {
    'User-Agent': 'GPTBot/1.2',
    'Accept-Encoding': 'gzip',
    'If-None-Match': '"a"',
    Range: 'bytes=0-4',
  })
  assert.equal(answer.status, 200)
  assert.equal(answer.headers['content-type'], 'text/plain; charset=utf-8')
  assert.equal(Number(answer.headers['content-length']), Buffer.byteLength(answer.body))
  assert.match(answer.body, /^Sitemap: https:\/\/a\.test\/sitemap\.xml$/m)
  assert.match(answer.body, /^License: http:\/\/site\.test\/license\.xml$/m)
  const robots = RobotsTxt.parse(answer.body)
  for (const [token, path, isOpen] of [
    ['gptbot', '/', false],
    ['googlebot', '/', true],
    ['googlebot', '/cart', false],
    ['googlebot', '/secret/a', false],
    ['unknownbot', '/cart', false],
    ['unknownbot', '/secret/a', true],
  ] as const)
    assert.equal(robots.disallowing(token, path) === null, isOpen, `${token} ${path}`)
  for (const name of ['accept-encoding', 'if-none-match', 'range'])
    assert.equal(asked.at(-1)!.headers[name], undefined, name)
  const { rule, done } = gate.sightings.at(-1)!
  assert.deepEqual([rule, done], ['publish.robots', 'pass'])
  assert.equal((await ask('/', { 'User-Agent': 'GPTBot/1.2' })).status, 403)
  assert.equal((await ask('/robots.txt?x=1')).status, 200)
  const head = await ask('/robots.txt', {}, 'HEAD')
  assert.deepEqual([head.status, head.body], [200, ''])
})

test('an app without a robots.txt has no rules, and one that fails is passed on', async (t) => {
  let status = 404
  const { ask } = await publishing(t, (_, response) => {
    response.writeHead(status, { Location: 'https://b.test/robots.txt' })
    response.end('User-agent: *\nDisallow: /\n')
  })
  for (status of [404, 410, 401]) {
    const { status: seen, body } = await ask('/robots.txt')
    assert.equal(seen, 200)
    assert.equal(RobotsTxt.parse(body).disallowing('googlebot', '/'), null)
    assert.notEqual(RobotsTxt.parse(body).disallowing('gptbot', '/'), null)
  }
  for (status of [500, 503, 429, 301]) {
    const answer = await ask('/robots.txt')
    assert.equal(answer.status, status)
    if (status !== 301) assert.match(answer.body, /^User-agent: \*\nDisallow: \/\n$/)
  }
})

test('robots.txt of any length is answered, and only its first half megabyte counts', async (t) => {
  const { ask } = await publishing(t, (_, response) => {
    response.write('User-agent: *\nDisallow: /early\n')
    response.write('# filling\n'.repeat(60_000))
    response.end('Disallow: /late\n')
  })
  const robots = RobotsTxt.parse((await ask('/robots.txt')).body)
  assert.notEqual(robots.disallowing('googlebot', '/early'), null)
  assert.equal(robots.disallowing('googlebot', '/late'), null)
})

test('an answer that is encoded although nothing else was asked for is passed on', async (t) => {
  const { ask } = await publishing(t, (_, response) => {
    response.setHeader('Content-Encoding', 'x-own')
    response.end('bytes')
  })
  assert.equal((await ask('/robots.txt')).body, 'bytes')
})

test('answers of the app say how their content may be used, unless the app says it', async (t) => {
  const { ask, gate } = await publishing(t, ({ url }, response) => {
    if (url === '/own') response.setHeader('Content-Usage', 'train-ai=y')
    response.end('page')
  })
  assert.equal((await ask('/page')).headers['content-usage'], 'train-ai=n, search=y')
  assert.equal((await ask('/secret/a?b=c')).headers['content-usage'], 'train-ai=n, search=n')
  assert.equal((await ask('/own')).headers['content-usage'], 'train-ai=y')
  gate.judgeBy({ rules: [] })
  assert.equal((await ask('/page')).headers['content-usage'], undefined)
})

test('the licence is answered by the proxy, for every client', async (t) => {
  const { ask, asked } = await publishing(t, (_, response) => response.end('page'))
  const answer = await ask('/license.xml', { 'User-Agent': 'GPTBot/1.2' })
  assert.equal(answer.status, 200)
  assert.equal(answer.headers['content-type'], 'application/rsl+xml')
  assert.match(
    answer.body,
    /<content url="\/">\s*<license>\s*<permits type="usage">search,ai-input<\/permits>/,
  )
  assert.equal(asked.length, 0)
  assert.equal((await ask('/license.xml.bak')).body, 'page')
})

test('nothing is published without a setting', async () => {
  assert.equal(
    TermsPublisher.for({ hasRobots: false, hasUsage: false, hasSignals: true, rslPath: null }),
    null,
  )
})

async function publishing(t: Test, answer: http.RequestListener) {
  const asked: http.IncomingMessage[] = []
  const app = http.createServer((request, response) => {
    asked.push(request)
    answer(request, response)
  })
  await once(app.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    app.closeAllConnections()
    app.close()
  })
  const gate = await startGate(t, {
    upstreams: [settingsFor([`http://127.0.0.1:${(app.address() as AddressInfo).port}`])],
    policy: POLICY,
    knowledge: await loadKnowledge(null, null),
    context: { publisher: TermsPublisher.for(ALL) },
  })
  const ask = async (path: string, headers: Record<string, string> = {}, method = 'GET') => {
    const request = http.request({
      ...{ host: '127.0.0.1', port: gate.plain.port, path, method, agent: false },
      headers: { Host: 'site.test', ...headers },
    })
    request.end()
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    return { status: response.statusCode!, headers: response.headers, body: await text(response) }
  }
  return { ask, asked, gate }
}
