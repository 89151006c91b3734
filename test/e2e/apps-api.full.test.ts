import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type Test, test } from 'tap'
import { COMMAND_LINE } from '../../src/manage/http/audit.ts'
import { makeKey } from '../../src/manage/auth/make-key.ts'
import { parseApps } from '../../src/apps/app.ts'
import { makeDelta } from '../../src/plane/snapshot-delta.ts'
import { packSnapshot } from '../../src/plane/snapshot-package.ts'
import { makeSnapshot } from '../../src/plane/snapshot.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { until } from '../until.ts'
import { type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { temporaryFolder } from './programs.ts'

for (const kind of KINDS) {
  test(`${kind}: of 200 apps of the API, each gets the requests for its hosts`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const store = await openAt(t, storeUrl)
    const wanted = {
      name: 'test',
      apps: '*' as const,
      scopes: ['admin'],
      plan: 'unlimited',
      expiresAtMs: null,
    } as const
    const { key } = await makeKey(store, wanted, COMMAND_LINE, Date.now())
    const [one, two] = [await named(t, 'one'), await named(t, 'two')]
    const options = {
      command: 'up',
      settings: [`upstreams: [{name: one, urls: ['${one}']}, {name: two, urls: ['${two}']}]`],
      argv: ['--workers', '1', '--data', temporaryFolder(t)],
      variables: { GATEHOUSE_STORE_URL: storeUrl },
    } as const
    const gatehouse = await startGatehouse(t, options)
    const api = client(gatehouse, key)
    for (let number = 0; number < APPS; number++)
      assert.equal(await api('POST', '/v1/apps', app(number)), 201)
    const upstreams = async (at: RunningGatehouse, host: (number: number) => string) => {
      const answers: string[] = []
      for (let number = 0; number < APPS; number++) answers.push(await answerOf(at, host(number)))
      return answers
    }
    const expected = Array.from({ length: APPS }, (_, number) => upstreamOf(number))
    const last = `app-${APPS - 1}.example`
    await until(async () => (await answerOf(gatehouse, last)) === upstreamOf(APPS - 1))
    assert.deepEqual(await upstreams(gatehouse, (number) => `APP-${number}.example:443`), expected)
    assert.deepEqual(await upstreams(gatehouse, (number) => `any.app-${number}.example`), expected)
    assert.equal(await answerOf(gatehouse, 'none.example'), 'one')
    for (const id of ['app-1', 'app-5']) {
      await until(async () => (await countedOf(gatehouse, id)) === 2)
      await until(async () => {
        const stats = await read<Statistics>(gatehouse, key, `/v1/stats?window=1h&app=${id}`)
        return stats.detection.requests === 2
      })
      const { requests } = await read<Requests>(gatehouse, key, `/v1/requests?app=${id}`)
      assert.deepEqual(
        requests.map((each) => each.app),
        [id, id],
      )
    }

    const times: number[] = []
    for (const upstream of ['two', 'one', 'two', 'one', 'two']) {
      const sentAtMs = performance.now()
      assert.equal(await api('PATCH', '/v1/apps/app-0', { upstream }), 200)
      await until(async () => (await answerOf(gatehouse, 'app-0.example')) === upstream)
      times.push(Math.round(performance.now() - sentAtMs))
    }
    t.comment(`${kind}: changes are in force after ${times.join(', ')} ms`)
    // A busy machine delays single ones.
    assert.ok(Math.min(...times) < 2_000, `${times} ms`)
    assert.equal(await answerOf(gatehouse, 'app-2.example'), 'one')

    await gatehouse.stop()
    const again = await startGatehouse(t, options)
    assert.equal(await answerOf(again, 'app-0.example'), 'two', 'from the first request on')
  })
}

test('a Snapshot grows linearly with its apps, and a change of one is a small difference', async (t) => {
  const packed = (count: number, first: object = {}) => {
    const all = Array.from({ length: count }, (_, number) => ({ ...app(number), ...(number === 0 && first) }))
    return packSnapshot(makeSnapshot(1, {}, 1, null, { apps: parseApps(all) }))
  }
  const sizes = await Promise.all([0, 200, 400, 800].map(async (count) => (await packed(count)).length))
  const [none, some, twice, most] = sizes as [number, number, number, number]
  t.comment(`bytes of Snapshots with 0, 200, 400 and 800 apps: ${sizes.join(', ')}`)
  const each = (some - none) / 200
  assert.ok(Math.abs((twice - none) / 400 / each - 1) < 0.05)
  assert.ok(Math.abs((most - none) / 800 / each - 1) < 0.05)
  const delta = await makeDelta(await packed(200), await packed(200, { team: 'sales' }))
  t.comment(`bytes of the difference: ${delta.length}`)
  assert.ok(delta.length < 500, `${delta.length}`)
})

function app(number: number) {
  const name = `app-${number}`
  const hosts = [`${name}.example`, `*.${name}.example`, `www.${name}.example.org`]
  return { id: name, team: `team-${number % 40}`, hosts, upstream: upstreamOf(number) }
}

function upstreamOf(number: number): string {
  return number % 3 === 1 ? 'two' : 'one'
}

async function named(t: Test, name: string): Promise<string> {
  const server = createServer((_, response) => response.end(name)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close().closeAllConnections())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** The status of the answer. */
function client({ manage }: RunningGatehouse, key: string) {
  return async (method: string, path: string, body: unknown): Promise<number> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const response = await fetch(manage + path, { method, headers, body: JSON.stringify(body) })
    await response.arrayBuffer()
    return response.status
  }
}

interface Statistics {
  readonly detection: { readonly requests: number }
}

interface Requests {
  readonly requests: readonly { readonly app: string }[]
}

async function read<Answer>({ manage }: RunningGatehouse, key: string, path: string): Promise<Answer> {
  const response = await fetch(manage + path, { headers: { authorization: `Bearer ${key}` } })
  assert.equal(response.status, 200, path)
  return (await response.json()) as Answer
}

/** The requests of an app in the metrics. */
async function countedOf({ manage }: RunningGatehouse, id: string): Promise<number> {
  const page = await (await fetch(`${manage}/metrics`)).text()
  const lines = page.matchAll(/^gatehouse_requests_total\{.*app="([^"]*)".*\} (\d+)$/gm)
  return [...lines].reduce((sum, [, app, value]) => sum + (app === id ? Number(value) : 0), 0)
}

async function answerOf({ url, ca }: RunningGatehouse, host: string): Promise<string> {
  const outgoing = request(url, { ca, servername: 'localhost', headers: { host }, agent: AGENT }).end()
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  return text(response)
}

/** All hosts over one connection. */
const AGENT = new Agent({ keepAlive: true, maxSockets: 1 })

const APPS = 200
