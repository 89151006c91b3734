import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'tap'
import { TestManagement } from './management.ts'

const isBuilt = existsSync(new URL('../../dist/dashboard/index.html', import.meta.url))
const skip = !isBuilt && 'the dashboard is not built: npm run build:dashboard'

test('the dashboard is there for everybody, at any address below its own', { skip }, async (t) => {
  const { url } = await TestManagement.start(t)
  for (const path of ['/', '/dashboard']) {
    const { status, headers } = await fetch(url + path, { redirect: 'manual' })
    assert.deepEqual([status, headers.get('location')], [302, '/dashboard/'])
  }
  const page = await fetch(`${url}/dashboard/`)
  const text = await page.text()
  assert.match(text, /<div id="app">/)
  for (const path of ['signatures?q=a', 'agents/%2e%2e%2f%2e%2e%2fetc%2fpasswd', 'index.html', '..%2fx', '%'])
    assert.equal(await (await fetch(`${url}/dashboard/${path}`)).text(), text, path)
  const [, script] = /src="([^"]+\.js)"/.exec(text) ?? []
  const { headers } = await fetch(url + script)
  assert.match(headers.get('content-type')!, /^text\/javascript/)
  assert.deepEqual(
    [headers.get('cache-control'), page.headers.get('cache-control')],
    ['public, max-age=31536000', 'no-cache'],
  )
  const again = await fetch(`${url}/dashboard/`, { headers: { 'if-none-match': page.headers.get('etag')! } })
  assert.equal(again.status, 304)
})

test('its pages take nothing from elsewhere, and nobody else has them in a frame', { skip }, async (t) => {
  const { url } = await TestManagement.start(t)
  const { headers } = await fetch(`${url}/dashboard/`)
  const policy = headers.get('content-security-policy')!
  assert.match(policy, /^default-src 'none'; script-src 'self'; /)
  assert.match(policy, /frame-ancestors 'none'; require-trusted-types-for 'script'/)
  assert.doesNotMatch(policy, /unsafe|http|\*|data:/)
  assert.deepEqual(
    [headers.get('x-frame-options'), headers.get('referrer-policy'), headers.get('x-content-type-options')],
    ['DENY', 'no-referrer', 'nosniff'],
  )
})

test('the first load is small, and the first page with its plots', { skip }, async (t) => {
  const { url } = await TestManagement.start(t)
  const loaded = new Map<string, string>()
  let bytes = 0
  const load = async (path: string): Promise<void> => {
    if (loaded.has(path)) return
    loaded.set(path, '')
    const response = await fetch(url + path, { headers: { 'accept-encoding': 'gzip' } })
    assert.equal(response.status, 200, path)
    const text = await response.text()
    loaded.set(path, text)
    bytes += Number(response.headers.get('content-length'))
    const imports = path.endsWith('.js') ? text.matchAll(/(?:from|import)["'`]\.\/([\w-]+\.js)["'`]/g) : []
    for (const [, name] of imports) await load(`/dashboard/assets/${name}`)
  }
  await load('/dashboard/')
  for (const [, path] of loaded.get('/dashboard/')!.matchAll(/(?:src|href)="(\/dashboard\/[^"]+)"/g))
    await load(path!)
  assert.ok(loaded.size >= 4)
  assert.ok(bytes > 5_000 && bytes < 30_000, `the frame: ${bytes} bytes`)
  const chunk = (name: RegExp) => {
    const [found] = [...loaded.values()].flatMap((text) => name.exec(text) ?? [])
    assert.ok(found !== undefined, `nothing loads ${name}`)
    return `/dashboard/assets/${found}`
  }
  await load(chunk(/overview-[\w-]+\.js/))
  assert.ok(bytes < 40_000, `with the overview: ${bytes} bytes`)
  for (const name of [/uplot-[\w-]+\.js/, /uplot-[\w-]+\.css/]) await load(chunk(name))
  assert.ok(bytes < 62_000, `with its plots: ${bytes} bytes`)
  t.comment(`${loaded.size} files, ${bytes} bytes`)
})

test('the manual is there for its Help, from the files of the package', { skip }, async (t) => {
  const { url } = await TestManagement.start(t)
  const list = await fetch(`${url}/dashboard/guide/index.json`)
  const { pages } = (await list.json()) as { pages: { topic: string; title: string; about: string }[] }
  const { title } = pages.find(({ topic }) => topic === 'commands')!
  const page = await fetch(`${url}/dashboard/guide/commands.md`)
  assert.match(page.headers.get('content-type')!, /^text\/markdown/)
  const text = await page.text()
  assert.equal(text, readFileSync('config/guide/commands.md', 'utf8'))
  assert.ok(text.startsWith(`# ${title}\n`))
  for (const path of ['none.md', '..%2fexample.yaml', 'example.yaml', ''])
    assert.equal((await fetch(`${url}/dashboard/guide/${path}`)).status, 404, path)
})

test('what is no page of it, or is not read, is refused', { skip }, async (t) => {
  const { url } = await TestManagement.start(t)
  const { status } = await fetch(`${url}/dashboard/assets/none.js`)
  assert.equal(status, 404)
  const posted = await fetch(`${url}/dashboard/`, { method: 'POST' })
  assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD'])
  const without = await TestManagement.start(t, { hasDashboard: false })
  for (const path of ['/', '/dashboard/']) assert.equal((await fetch(without.url + path)).status, 404)
})

test('GET /me says who asks, whatever he may do', async (t) => {
  const manage = await TestManagement.start(t)
  for (const scope of ['read', 'detect', 'write', 'mcp', 'admin'] as const) {
    const wanted = { name: `only ${scope}`, scopes: [scope], expires_at: '2099-01-01T00:00:00.000Z' }
    const { body: key } = await manage.ask('POST', '/v1/keys', wanted)
    const { status, body } = await manage.ask('GET', '/v1/me', undefined, {
      authorization: `Bearer ${key.key}`,
    })
    const { id, name, scopes, apps, plan, expires_at } = key
    assert.deepEqual([status, body], [200, { id, name, scopes, apps, plan, expires_at }])
  }
  assert.equal((await fetch(`${manage.url}/v1/me`)).status, 401)
})
