import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { seen } from '../contract/seen.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { until } from '../until.ts'
import { TestManagement } from './management.ts'
import { rowsOf } from './parquet-rows.ts'

for (const kind of KINDS)
  test(`${kind}: an export has what the list has, in each format, and is noted`, async (t) => {
    const manage = await TestManagement.start(t, { storeUrl: await freshUrl(kind, t) })
    const seenAtMs = Date.now()
    await manage.take(
      Array.from({ length: 1_200 }, (_, at) =>
        seen(at, {
          ...{ seenAtMs, app: at % 2 === 0 ? 'shop' : 'blog', path: `/${at}` },
          userAgent: at === 0 ? '=HYPERLINK("https://evil.example")' : null,
        }),
      ),
    )
    const get = (query: string, key = manage.adminKey) =>
      fetch(`${manage.url}/v1/requests/export?${query}`, { headers: { authorization: `Bearer ${key}` } })
    const whole = await get('app=shop')
    assert.deepEqual(
      ['content-type', 'content-disposition', 'cache-control'].map((name) => whole.headers.get(name)),
      [
        'application/x-ndjson; charset=utf-8',
        'attachment; filename="requests.ndjson"',
        'no-store, no-transform',
      ],
    )
    const lines = (await whole.text()).trimEnd().split('\n')
    assert.equal(lines.length, 600)
    const [newest] = (await manage.ask('GET', '/v1/requests?app=shop&limit=1')).body.requests
    assert.deepEqual(JSON.parse(lines[0]!), newest)
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).path),
      Array.from({ length: 600 }, (_, at) => `/${1_198 - 2 * at}`),
    )
    assert.equal((await (await get('limit=7')).text()).trimEnd().split('\n').length, 7)
    assert.equal(await (await get('app=none')).text(), '')
    const table = await get('format=csv&app=shop&path=/0')
    assert.equal(table.headers.get('content-type'), 'text/csv; charset=utf-8')
    const [head, row, end] = (await table.text()).split('\r\n')
    assert.ok(head!.startsWith('id,seen_at,app,proxy,method,host,path,address,user_agent,'))
    assert.ok(row!.includes(`,"'=HYPERLINK(""https://evil.example"")",`), row)
    assert.equal(end, '')
    const binary = await get('format=parquet&app=shop')
    assert.equal(binary.headers.get('content-type'), 'application/vnd.apache.parquet')
    const rows = await rowsOf(Buffer.from(await binary.arrayBuffer()))
    assert.deepEqual(
      rows.map(({ path }) => path),
      Array.from({ length: 600 }, (_, at) => `/${1_198 - 2 * at}`),
    )
    assert.deepEqual(
      [rows[0]!['id'], rows[0]!['seen_at'], rows[0]!['app'], rows[0]!['weight']],
      [newest.id, new Date(newest.seen_at), 'shop', 1],
    )
    assert.equal(
      (await rowsOf(Buffer.from(await (await get('format=parquet&app=none')).arrayBuffer()))).length,
      0,
    )
    const { audit } = (await manage.ask('GET', '/v1/audit?action=exportRequests')).body
    assert.deepEqual(
      audit.map(({ apps, detail }: Record<string, unknown>) => [apps, detail]),
      [
        ['*', { format: 'parquet', limit: 100_000, app: 'none' }],
        ['*', { format: 'parquet', limit: 100_000, app: 'shop' }],
        ['*', { format: 'csv', limit: 100_000, app: 'shop', path: '/0' }],
        ['*', { format: 'ndjson', limit: 100_000, app: 'none' }],
        ['*', { format: 'ndjson', limit: 7 }],
        ['*', { format: 'ndjson', limit: 100_000, app: 'shop' }],
      ],
    )
    for (const query of ['format=xml', 'limit=0', 'limit=1000001', 'address=x', 'cursor=x'])
      assert.equal((await get(query)).status, 400, query)
    const checked = await fetch(`${manage.url}/v1/requests/export`, {
      method: 'HEAD',
      headers: { authorization: `Bearer ${manage.adminKey}` },
    })
    assert.deepEqual([checked.status, await checked.text()], [200, ''])
    assert.deepEqual(manage.failures, [])
  })

for (const kind of KINDS)
  test(`${kind}: an export shows what the caller may see`, async (t) => {
    const manage = await TestManagement.start(t, { storeUrl: await freshUrl(kind, t) })
    const seenAtMs = Date.now()
    await manage.take([
      seen(1, { seenAtMs, app: 'shop', address: '203.0.113.7', path: '/reset/Xk29fLq0aB' }),
      seen(2, { seenAtMs, app: 'other', path: '/of-another-team' }),
    ])
    const get = async (query: string, key: string) => {
      const headers = { authorization: `Bearer ${key}` }
      const response = await fetch(`${manage.url}/v1/requests/export?${query}`, { headers })
      return { status: response.status, text: await response.text() }
    }
    const key = await manage.key({ scopes: ['read'], apps: ['shop'] })
    for (const format of ['ndjson', 'csv']) {
      const { text } = await get(`format=${format}`, key)
      assert.match(text, /203\.0\.113\.0\/24/)
      assert.match(text, /\/reset\/\[redacted\]/)
      assert.doesNotMatch(text, /another-team|203\.0\.113\.7|Xk29/)
    }
    const headers = { authorization: `Bearer ${key}` }
    const binary = await fetch(`${manage.url}/v1/requests/export?format=parquet`, { headers })
    const [row, ...others] = await rowsOf(Buffer.from(await binary.arrayBuffer()))
    assert.deepEqual([row!['address'], row!['path'], others], ['203.0.113.0/24', '/reset/[redacted]', []])
    assert.equal((await get('address=203.0.113.7', key)).status, 403)
    assert.equal((await get('', await manage.key({ scopes: ['detect'] }))).status, 403)
    // An administrator of the app sees that it was exported.
    const admin = await manage.key({ apps: ['shop'] })
    const { audit } = (await manage.ask('GET', '/v1/audit', undefined, { authorization: `Bearer ${admin}` }))
      .body
    assert.deepEqual(
      audit
        .filter(({ action }: { action: string }) => action === 'exportRequests')
        .map(({ apps }: { apps: unknown }) => apps),
      [['shop'], ['shop'], ['shop']],
    )
    assert.deepEqual(manage.failures, [])
  })

test('an export ends with its client, and breaks off without the access of its caller', async (t) => {
  const manage = await TestManagement.start(t)
  const seenAtMs = Date.now()
  const long = 'x'.repeat(1_000)
  // More than the buffers of both ends hold.
  for (let part = 0; part < 12; part++)
    await manage.take(
      Array.from({ length: 2_000 }, (_, at) =>
        seen(part * 2_000 + at, { seenAtMs, path: `/${part}/${long}` }),
      ),
    )
  const begin = async (key: string) => {
    const leave = new AbortController()
    const response = await fetch(`${manage.url}/v1/requests/export`, {
      headers: { authorization: `Bearer ${key}` },
      signal: leave.signal,
    })
    if (response.status !== 200) return null
    const reader = response.body!.getReader()
    assert.ok((await reader.read()).value!.length > 0)
    return { reader, leave: () => leave.abort() }
  }
  // A caller may have 100 open at once.
  for (let each = 0; each < 120; each++) {
    let open: Awaited<ReturnType<typeof begin>> = null
    await until(async () => {
      open = await begin(manage.adminKey)
      return open !== null
    })
    open!.leave()
  }
  const { body: made } = await manage.ask('POST', '/v1/keys', { name: 'reader', access: 'read' })
  const cut = (await begin(made.key))!
  assert.equal((await manage.ask('DELETE', `/v1/keys/${made.id}`)).status, 204)
  // Slower than the file could be read.
  await until(async () => {
    await wait(20)
    const read = await cut.reader.read().catch(() => null)
    assert.equal(read?.done ?? false, false, 'the file looks whole')
    return read === null
  })
  assert.deepEqual(manage.failures, [])
})
