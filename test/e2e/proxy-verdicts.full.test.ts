import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join, resolve } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { type Test, test } from 'tap'
import { loadSoftware } from '../../src/runtime/signatures/signature-files.ts'
import { headerV1 } from '../proxy/proxy-header.ts'
import { type App, type Asked, type Route, startApp } from './app.ts'
import { type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { plainEnvironment, run, skipped, temporaryFolder } from './programs.ts'
import { CHROMIUM } from './real-clients.ts'

/** A program, and how it asks for a page. Those that are no browser print the status. */
interface Client {
  readonly name: string
  readonly program: string
  argv(url: string, folder: string): readonly string[]
}

/** What the app is told about the client of a page. */
interface Told {
  readonly verdict: string | null
  readonly name: string | null
  readonly category: string | null
  readonly purpose: string | null
  readonly confidence: string | null
}

const PAGE = '<!doctype html><title>A page</title><p id=here>here</p><img src=/picture.png>'
const ROUTES: Readonly<Record<string, Route>> = {
  '/page': (_, response) => {
    response.setHeader('Content-Type', 'text/html').end(PAGE)
  },
}
const GPTBOT =
  'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.2; +https://openai.com/gptbot'
const OPENAI_HEADERS = {
  ...{ accept: 'application/json', 'user-agent': 'OpenAI/JS 7.57.0', 'x-stainless-retry-count': '0' },
  ...{ 'x-stainless-lang': 'js', 'x-stainless-package-version': '7.57.0', 'x-stainless-os': 'Linux' },
  ...{ authorization: 'Bearer none', 'content-type': 'application/json' },
}
const MCP_HEADERS = {
  ...{ 'mcp-session-id': '1', 'mcp-protocol-version': '2025-06-18', 'content-type': 'application/json' },
  accept: 'application/json, text/event-stream',
}
const NODE_FETCH = `const [url, options] = process.argv.slice(1)
  fetch(url, JSON.parse(options)).then(({ status }) => console.log(status))`

const CURL = curl('curl')
const GPTBOT_BY_CURL = curl('curl as GPTBot', '-A', GPTBOT)
const CHROME_BY_CURL = curl('curl as Chromium', '-A', userAgentOfChromium())
const WITHOUT_WINDOW = chromium('Chromium that says that it has no window')
/** Of what its users send, it sends all: that it has no window shows nowhere else. */
const WITH_WINDOW = chromium('Chromium as its users have it', `--user-agent=${userAgentOfChromium()}`)

const EXPECTED: readonly (readonly [client: Client, told: Omit<Told, 'confidence'>])[] = [
  [CURL, { verdict: 'automation', name: null, category: null, purpose: null }],
  [GPTBOT_BY_CURL, { verdict: 'agent', name: 'GPTBot', category: 'crawler', purpose: 'training' }],
  [fetching('fetch of Node', {}), { verdict: 'automation', name: null, category: null, purpose: null }],
  [
    fetching('the SDK of OpenAI', { method: 'POST', headers: OPENAI_HEADERS, body: '{}' }),
    { verdict: 'agent', name: 'OpenAI Node SDK', category: 'llm-sdk', purpose: null },
  ],
  [
    fetching('a client of MCP', { method: 'POST', headers: MCP_HEADERS, body: '{}' }),
    { verdict: 'agent', name: 'MCP client', category: 'mcp-client', purpose: null },
  ],
  [CHROME_BY_CURL, { verdict: 'agent', name: null, category: null, purpose: null }],
  [WITHOUT_WINDOW, { verdict: 'agent', name: 'Headless Chrome', category: 'browser-agent', purpose: null }],
]

test('the app is told the verdict on each client', async (t) => {
  const app = await startApp(t, ROUTES)
  const gatehouse = await startGatehouse(t, { upstream: app.url })
  for (const [client, expected] of EXPECTED) {
    t.test(client.name, { skip: skipped(client.program) }, async (t) => {
      await visit(t, client, `${gatehouse.url}/page`)
      const { confidence, ...told } = toldOf(app, '/page')
      assert.deepEqual(told, expected)
      assert.match(confidence ?? '', /^(?:0\.[3-9]\d|1\.00)$/)
    })
  }
  t.test(WITH_WINDOW.name, { skip: skipped('chromium') }, async (t) => {
    await visit(t, WITH_WINDOW, `${gatehouse.url}/page`)
    assert.ok(['human', 'unknown'].includes(toldOf(app, '/page').verdict ?? ''))
    // Programs seldom ask for what is in a page.
    const { confidence, ...told } = toldOf(app, '/picture.png')
    assert.deepEqual(told, { verdict: 'human', name: null, category: null, purpose: null })
    assert.match(confidence ?? '', /^(?:0\.[3-9]\d|1\.00)$/)
  })
})

test('a spoofed browser is blocked, and the browser is not', async (t) => {
  const app = await startApp(t, ROUTES)
  const policy = join(temporaryFolder(t), 'policy.yaml')
  writeFileSync(policy, 'rules: [{name: spoofed, when: {evidence: spoofed-browser}, action: block}]\n')
  const gatehouse = await startGatehouse(t, { upstream: app.url, argv: ['--policy', policy] })
  const url = `${gatehouse.url}/page`
  t.test('curl', { skip: skipped('curl') }, async (t) => {
    assert.equal(await visit(t, CHROME_BY_CURL, url), '403')
    assert.deepEqual(app.asked, [])
    assert.equal(await visit(t, CURL, url), '200')
  })
  for (const client of [WITHOUT_WINDOW, WITH_WINDOW]) {
    t.test(client.name, { skip: skipped('chromium') }, async (t) => {
      assert.match(await visit(t, client, url), /<p id="here">here<\/p>/)
    })
  }
})

/** For each policy that comes with Gatehouse: clients, their requests, and the expected status. */
const READY_MADE: Readonly<
  Record<string, readonly (readonly [client: Client, path: string, status: string])[]>
> = {
  'observe.yaml': [
    [CURL, '/page', '200'],
    [GPTBOT_BY_CURL, '/page', '200'],
    [CHROME_BY_CURL, '/page', '200'],
  ],
  'block-unverified-crawlers.yaml': [
    [GPTBOT_BY_CURL, '/page', '503'],
    [GPTBOT_BY_CURL, '/robots.txt', '200'],
    [CURL, '/page', '200'],
  ],
  'block-spoofed-browsers.yaml': [
    [CHROME_BY_CURL, '/page', '403'],
    [GPTBOT_BY_CURL, '/page', '200'],
    [CURL, '/page', '200'],
  ],
  // From here, which is an address of no agent.
  'block-impostors.yaml': [
    [GPTBOT_BY_CURL, '/page', '200'],
    [CHROME_BY_CURL, '/page', '200'],
    [CURL, '/page', '200'],
  ],
  'allow-verified-only.yaml': [
    [GPTBOT_BY_CURL, '/page', '403'],
    [CURL, '/page', '403'],
    [CURL, '/feed.xml', '200'],
  ],
  'policy.yaml': [
    [GPTBOT_BY_CURL, '/search?q=1', '403'],
    [GPTBOT_BY_CURL, '/page', '200'],
    [CURL, '/search?q=1', '200'],
  ],
}

for (const [file, visits] of Object.entries(READY_MADE)) {
  test(`config/${file}`, { skip: skipped('curl') }, async (t) => {
    const app = await startApp(t, ROUTES)
    const gatehouse = await startGatehouse(t, {
      upstream: app.url,
      argv: ['--policy', resolve('config', file)],
    })
    for (const [client, path, status] of visits)
      assert.equal(await visit(t, client, gatehouse.url + path), status, `${client.name} at ${path}`)
    if (skipped('chromium') !== false) return
    // People are let in by all of them.
    assert.match(await visit(t, WITH_WINDOW, `${gatehouse.url}/page`), /<p id="here">here<\/p>/)
    assert.equal(toldOf(app, '/picture.png').verdict, 'human')
  })
}

test('behind a balancer, GPTBot comes in from where it is published to be', {
  skip: skipped('curl'),
}, async (t) => {
  const app = await startApp(t, ROUTES)
  const settings = ['trusted_proxies: [127.0.0.1]']
  const gptbot = (await loadSoftware(null)).find(({ id }) => id === 'gptbot')!
  const [own] = gptbot.verification.ranges!.prefixes[0]!.split('/')
  const from = (address: string) => curl(`from ${address}`, '-A', GPTBOT, '-H', `X-Forwarded-For: ${address}`)
  for (const [file, status] of [
    ['allow-verified-only.yaml', '403'],
    ['block-unverified-crawlers.yaml', '503'],
    ['block-impostors.yaml', '503'],
  ] as const) {
    const argv = ['--policy', resolve('config', file)]
    const { url } = await startGatehouse(t, { upstream: app.url, settings, argv })
    app.asked.length = 0
    assert.equal(await visit(t, from('198.51.100.7'), `${url}/page`), status)
    assert.equal(await visit(t, from(own!), `${url}/page`), '200')
    assert.deepEqual(
      app.asked.map((asked) => headerIn(asked, 'X-Agent-Verified')),
      ['ip-range'],
    )
  }
})

test('what a client was, it is for the rest of its connection', async (t) => {
  const app = await startApp(t)
  const settings = ['trusted_proxies: [127.0.0.1]', 'proxy_protocol: optional']
  const direct = await startGatehouse(t, { upstream: app.url })
  const behind = await startGatehouse(t, { upstream: app.url, settings })
  t.test('of its own', async () => {
    assert.deepEqual(await askTwice(direct, app, null), ['agent GPTBot', 'agent GPTBot'])
  })
  t.test('that a balancer passes on, with a PROXY header', async () => {
    const header = headerV1('TCP4 192.0.2.1 192.0.2.2 56324 443')
    assert.deepEqual(await askTwice(behind, app, header), ['agent GPTBot', 'agent GPTBot'])
  })
  t.test('but not where a proxy sends requests of many clients on one', async () => {
    assert.deepEqual(await askTwice(behind, app, null), ['agent GPTBot', 'automation null'])
  })
})

/** GPTBot, and then curl, on one connection: what the app is told of each. */
async function askTwice(
  { port, ca }: RunningGatehouse,
  app: App,
  proxyHeader: Buffer | null,
): Promise<readonly string[]> {
  app.asked.length = 0
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  if (proxyHeader !== null) socket.write(proxyHeader)
  const tls = connectTls({ socket, ca, servername: 'localhost' })
  for (const [i, userAgent] of [GPTBOT, 'curl/8.5.0'].entries()) {
    const head = [`GET /${i} HTTP/1.1`, 'Host: localhost', `User-Agent: ${userAgent}`]
    tls.write([...head, `X-Forwarded-For: 198.51.100.${i}`, '', ''].join('\r\n'))
    for (let answer = ''; !answer.endsWith('\r\n\r\nok'); ) answer += (await once(tls, 'data'))[0]
  }
  tls.destroy()
  return ['/0', '/1'].map((path) => {
    const { verdict, name } = toldOf(app, path)
    return `${verdict} ${name}`
  })
}

/** What it printed. */
async function visit(t: Test, client: Client, url: string): Promise<string> {
  const folder = temporaryFolder(t)
  const env = plainEnvironment(folder, { NODE_TLS_REJECT_UNAUTHORIZED: '0' })
  const { stdout } = await run(client.program, client.argv(url, folder), { env })
  return stdout.trim()
}

function toldOf({ asked }: App, path: string): Told {
  const last = asked.findLast(({ url }) => url === path)
  assert.ok(last, `the app was asked for ${path}`)
  return {
    verdict: headerIn(last, 'X-Agent-Verdict'),
    name: headerIn(last, 'X-Agent-Name'),
    category: headerIn(last, 'X-Agent-Category'),
    purpose: headerIn(last, 'X-Agent-Purpose'),
    confidence: headerIn(last, 'X-Agent-Confidence'),
  }
}

function headerIn({ rawHeaders }: Asked, name: string): string | null {
  const at = rawHeaders.findIndex((found, i) => i % 2 === 0 && found === name)
  return at === -1 ? null : rawHeaders[at + 1]!
}

function curl(name: string, ...more: readonly string[]): Client {
  return {
    name,
    program: 'curl',
    argv: (url, folder) => ['-sk', '-o', join(folder, 'body'), '-w', '%{http_code}', ...more, url],
  }
}

function fetching(name: string, options: object): Client {
  return {
    name,
    program: process.execPath,
    argv: (url) => ['-e', NODE_FETCH, url, JSON.stringify(options)],
  }
}

function chromium(name: string, ...more: readonly string[]): Client {
  return {
    name,
    program: 'chromium',
    argv: (url, folder) => [...CHROMIUM, ...more, `--user-data-dir=${folder}/profile`, url],
  }
}

/** Of the Chromium that is here, as it sends it when it has a window. */
function userAgentOfChromium(): string {
  const { stdout } = spawnSync('chromium', ['--version'], { encoding: 'utf8' })
  const version = /Chrom\w+ (\d+)\./.exec(stdout ?? '')?.[1] ?? '156'
  return `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${version}.0.0.0 Safari/537.36`
}
