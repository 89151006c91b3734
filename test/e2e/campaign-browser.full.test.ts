import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { type Browser, chromium } from 'playwright-core'
import { test } from 'tap'
import { startApp } from './app.ts'
import { startGatehouse } from './gatehouse.ts'
import { skipped, temporaryFolder } from './programs.ts'
import { startRotatingProxy } from './rotating-proxy.ts'
import { until } from '../until.ts'

const ADMIN_KEY = 'the key of the operator of this test'
/** `ADDRESSES=500` takes minutes: each visit has a browser context of its own, which takes most of the time. */
const ADDRESSES = Number(process.env['ADDRESSES'] ?? 80)
const PAGES_OF_VISIT = 2
const REQUESTS_MAX = 1_000
const PEOPLE = 24
const AT_ONCE = 4
const USER_AGENT_MARK = /Headless/g

test('a crawler with a real Chromium and many addresses is found within 1,000 requests', {
  skip: skipped('chromium'),
  timeout: 1_800_000,
}, async (t) => {
  const app = await startApp(t, {
    '/style.css': (_, response) => void response.writeHead(200, { 'content-type': 'text/css' }).end('a {}'),
  })
  const gate = await startGatehouse(t, {
    command: 'up',
    upstream: app.url,
    variables: { GATEHOUSE_ADMIN_KEY: ADMIN_KEY, GATEHOUSE_DATA_DIR: temporaryFolder(t) },
  })
  const api = async (method: string, path: string, body?: object, headers: object = {}) => {
    const response = await fetch(`${gate.manage}${path}`, {
      method,
      headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    // biome-ignore lint/suspicious/noExplicitAny: each answer is checked by what the test reads of it
    const answer: any = await response.json()
    return { body: answer, etag: response.headers.get('etag') ?? '' }
  }
  const proxy = await startRotatingProxy(t)
  const executablePath = spawnSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).stdout.trim()
  const browser = await chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--renderer-process-limit=1'],
  })
  t.teardown(() => browser.close())
  const userAgent = (await userAgentOf(browser)).replace(USER_AGENT_MARK, '')
  const open = async (address: string) => {
    const context = await browser.newContext({
      ignoreHTTPSErrors: true,
      userAgent,
      proxy: { server: proxy, username: address, password: 'x', bypass: '<-loopback>' },
    })
    const page = await context.newPage()
    page.setDefaultTimeout(60_000)
    return { context, page }
  }

  // People load the parts of pages, and follow links.
  await inTurns(PEOPLE, async (i) => {
    const { context, page } = await open(`127.2.0.${i + 1}`)
    await page.goto(`${gate.url}/`)
    await page.setContent(
      `<link rel=stylesheet href="${gate.url}/style.css"><a href="${gate.url}/item/${i}">a</a>`,
    )
    await page.evaluate(`fetch('/style.css')`)
    await Promise.all([page.waitForURL(/item/), page.click('a')])
    await context.close()
  })

  let sent = 0
  let foundAfter: number | null = null
  const campaignsFound = async () => (await api('GET', '/v1/campaigns')).body.campaigns
  await inTurns(REQUESTS_MAX / PAGES_OF_VISIT, async (i) => {
    if (foundAfter !== null && sent >= foundAfter + 60) return
    const { context, page } = await open(`127.1.${(i % ADDRESSES) >> 8}.${(i % ADDRESSES) & 255 || 1}`)
    await page.route('**/*', (route) =>
      route.request().resourceType() === 'document' ? route.continue() : route.abort(),
    )
    for (let each = 0; each < PAGES_OF_VISIT; each++) {
      await page.goto(`${gate.url}/catalogue/${PAGES_OF_VISIT * i + each}`)
      sent++
      if (foundAfter === null && sent % 20 === 0 && (await campaignsFound()).length > 0) foundAfter ??= sent
    }
    await context.close()
  })
  await until(async () => (await campaignsFound()).length > 0)
  t.comment(`found after ${foundAfter ?? sent} requests`)
  const [campaign] = await campaignsFound()
  assert.equal(campaign.software_id, 'chrome')

  // Its requests are those of the crawler, and of no person.
  await until(async () => (await campaignsFound())[0].members >= 50)
  const { requests } = (await api('GET', `/v1/requests?campaign_id=${campaign.id}&limit=100`)).body
  assert.ok(requests.length >= 50, `${requests.length} requests`)
  for (const { address, path } of requests)
    assert.match(`${address} ${path}`, /^127\.1\.\d+\.\d+ \/catalogue\//)

  // A rule blocks its members, and no person.
  const { etag } = await api('GET', '/v1/policy')
  const rules = [{ name: 'campaigns', when: { campaign: true }, action: 'block' }]
  await api('PUT', '/v1/policy', { rules }, { 'if-match': etag })
  const statusFrom = async (address: string) => {
    const { context, page } = await open(address)
    const response = await page.goto(`${gate.url}/catalogue/again`)
    await context.close()
    return response!.status()
  }
  await until(async () => (await statusFrom(requests[0].address)) === 403)
  assert.equal(await statusFrom('127.2.0.1'), 200)
  assert.equal(await statusFrom('127.3.0.1'), 200)
})

async function userAgentOf(browser: Browser): Promise<string> {
  const page = await browser.newPage()
  const text = await page.evaluate('navigator.userAgent')
  await page.close()
  return text as string
}

/** Runs `count` visits, a few at once. */
async function inTurns(count: number, visit: (i: number) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async () => {
    while (next < count) await visit(next++)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}
