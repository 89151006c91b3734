import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { type Test, test } from 'tap'
import { createManageServer } from '../../src/manage/app.ts'
import { METRICS_TYPE } from '../../src/shared/metrics.ts'
import { DRAINING, type UnreadyReason } from '../../src/plane/readiness.ts'

test('a process that runs is live, whatever else', async (t) => {
  const { get } = await manage(t, { reasons: [reason('everything is broken')] })
  assert.deepEqual(await get('/health/live'), [200, { status: 'live' }])
})

test('readiness says why not', async (t) => {
  const state: State = { reasons: [] }
  const { get } = await manage(t, state)
  assert.deepEqual(await get('/health/ready'), [200, { status: 'ready', reasons: [] }])
  state.reasons = [DRAINING, reason('upstream app: no target is healthy')]
  assert.deepEqual(await get('/health/ready'), [503, { status: 'not-ready', reasons: state.reasons }])
})

test('healthz, livez and readyz answer what the health paths answer, to GET and HEAD', async (t) => {
  const state: State = { reasons: [] }
  const { at, get } = await manage(t, state)
  for (const reasons of [[], [DRAINING]]) {
    state.reasons = reasons
    for (const [alias, path] of [
      ['/healthz', '/health/live'],
      ['/livez', '/health/live'],
      ['/readyz', '/health/ready'],
    ] as const) {
      const answer = await get(alias)
      assert.deepEqual(answer, await get(path), alias)
      const head = await fetch(at(alias), { method: 'HEAD' })
      assert.deepEqual([head.status, await head.text()], [answer[0], ''], alias)
      assert.equal((await fetch(at(alias), { method: 'POST' })).status, 405, alias)
    }
  }
})

test('metrics are in the form that Prometheus reads, and nothing is kept by caches', async (t) => {
  const { at } = await manage(t, { reasons: [] })
  const response = await fetch(at('/metrics'))
  assert.equal(await response.text(), 'gatehouse_x 1\n')
  assert.equal(response.headers.get('content-type'), METRICS_TYPE)
  assert.equal(response.headers.get('cache-control'), 'no-store')
  const head = await fetch(at('/metrics'), { method: 'HEAD' })
  assert.deepEqual([head.status, await head.text()], [200, ''])
})

test('a query changes nothing', async (t) => {
  const { get } = await manage(t, { reasons: [] })
  assert.equal((await get('/health/live?x=1'))[0], 200)
})

test('what is not there, or not for that, is a problem with a code', async (t) => {
  const { at } = await manage(t, { reasons: [] })
  for (const path of [
    '/',
    '/health',
    '/health/ready/',
    '/health/ready/x',
    '/METRICS',
    '/%6detrics',
    '//metrics',
  ]) {
    const response = await fetch(at(path))
    const body = await problemIn(response)
    assert.deepEqual(
      [response.status, body.status, body.code, body.title],
      [404, 404, 'not_found', 'Not found'],
      path,
    )
    assert.equal(response.headers.get('content-type'), 'application/problem+json')
  }
  for (const method of ['POST', 'DELETE', 'OPTIONS', 'PROPFIND']) {
    const response = await fetch(at('/metrics'), { method })
    assert.deepEqual([response.status, (await problemIn(response)).code], [405, 'method_not_allowed'])
    assert.equal(response.headers.get('allow'), 'GET, HEAD')
  }
})

test('a bug of ours is told to the log and not to the caller', async (t) => {
  const state: State = { reasons: [], broken: new Error('the secret is forty-two') }
  const { at, failures } = await manage(t, state)
  const response = await fetch(at('/metrics'))
  const body = await response.text()
  assert.equal(response.status, 500)
  assert.equal(JSON.parse(body).code, 'internal')
  assert.ok(!body.includes('forty-two'))
  assert.deepEqual(failures, [state.broken])
})

test('nothing a caller says makes it fail', async (t) => {
  const { port, failures, get } = await manage(t, { reasons: [] })
  const lines = [
    'GET http://[ HTTP/1.1',
    'GET //// HTTP/1.1',
    'GET * HTTP/1.1',
    'GET /%ZZ?%%% HTTP/1.1',
    'X / HTTP/1.1',
    'GET',
  ]
  for (const line of lines) {
    const socket = connect(port, '127.0.0.1')
    socket.end(`${line}\r\nHost: x\r\nConnection: close\r\n\r\n`)
    assert.match(await text(socket), /^HTTP\/1\.1 4\d\d /, line)
  }
  assert.deepEqual(failures, [])
  assert.equal((await get('/health/live'))[0], 200)
})

interface Problem {
  readonly status: number
  readonly code: string
  readonly title: string
}

async function problemIn(response: Response): Promise<Problem> {
  return (await response.json()) as Problem
}

function reason(detail: string): UnreadyReason {
  return { code: 'upstream', detail }
}

interface State {
  reasons: readonly UnreadyReason[]
  broken?: Error
}

async function manage(t: Test, state: State) {
  const failures: Error[] = []
  const server = createManageServer({
    unready: () => state.reasons,
    metrics: async () => {
      if (state.broken !== undefined) throw state.broken
      return 'gatehouse_x 1\n'
    },
    failed: (error) => failures.push(error),
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const at = (path: string) => `http://127.0.0.1:${port}${path}`
  const get = async (path: string): Promise<[number, unknown]> => {
    const response = await fetch(at(path))
    return [response.status, await response.json()]
  }
  return { port, at, get, failures }
}
