import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { text } from 'node:stream/consumers'
import type { AddressInfo } from 'node:net'
import { type Test, test } from 'tap'
import { parseApps } from '../../src/apps/app.ts'
import { makeSnapshot } from '../../src/plane/snapshot.ts'
import type { AppPolicyText } from '../../src/plane/snapshot-policies.ts'
import { SingleWorker } from '../../src/proxy/worker/single-worker.ts'
import { goodPair, liveState, surroundings, until, upstreamSettings } from './test-worker.ts'

const pair = await goodPair()
const APPS = parseApps([
  { id: 'shop', hosts: ['shop.example'], upstream: 'blog' },
  { id: 'blog', hosts: ['*.blog.example'], upstream: 'gone' },
])

test('a request belongs to the app of its host, and goes to its upstream', async (t) => {
  const { ask, publish, sightings, lines } = await serving(t, null)
  assert.equal(await ask('shop.example'), 'default')
  await until(() => sightings.length === 1)
  assert.equal(sightings[0]!.app, 'default')
  publish({ rules: [] })
  assert.equal(await ask('SHOP.example:443'), 'blog')
  assert.equal(await ask('www.blog.example'), 'default')
  assert.equal(await ask('en.blog.example'), 'default')
  assert.equal(await ask('wiki.example'), 'default')
  await until(() => sightings.length === 5)
  assert.deepEqual(
    sightings.slice(1).map(({ app }) => app),
    ['shop', 'blog', 'blog', 'default'],
  )
  const warnings = lines().filter(({ upstream }) => upstream === 'gone')
  assert.deepEqual(
    warnings.map(({ message, app }) => [message, app]),
    [['an app has an upstream that this proxy lacks; its requests go to the default', 'blog']],
  )
  publish({ rules: [{ name: 'all', when: {}, action: { route: { upstream: 'default' } } }] })
  assert.equal(await ask('shop.example'), 'default', 'a rule wins')
})

test('all requests of a proxy with proxy.app belong to that app', async (t) => {
  const { ask, publish, sightings } = await serving(t, 'shop')
  assert.equal(await ask('wiki.example'), 'default')
  publish({ rules: [] })
  assert.equal(await ask('wiki.example'), 'blog')
  await until(() => sightings.length === 2)
  assert.deepEqual(
    sightings.map(({ app }) => app),
    ['shop', 'shop'],
  )
})

test('each app has its own rules between those of the organisation', async (t) => {
  const { ask, publish, sightings } = await serving(t, null)
  const block = (name: string, path: string) => ({ name, when: { path }, action: 'block' })
  const limit = { rate_limit: { per: 'address', requests: 1, window: '1h' } }
  const own = {
    blog: { rules: [{ name: 'a', when: { path: '/own' }, action: 'block' }], otherwise: 'pass' },
    shop: { rules: [{ name: 'limit', when: { path: '/limit' }, action: limit }] },
    default: { rules: [{ name: 'limit', when: { path: '/limit' }, action: limit }] },
  }
  const documents = Object.entries(own).map(([app, document]) => ({
    app,
    document: JSON.stringify(document),
  }))
  publish({ first: [block('a', '/first')], last: [block('z', '/last')] }, documents)
  const done = async (host: string, path: string) => {
    await ask(host, path)
    await until(() => sightings.at(-1)?.path === path && sightings.at(-1)?.host === host)
    const { rule, layer, done, app } = sightings.at(-1)!
    return [rule, layer, done, app]
  }
  await done('none.example', '/')
  assert.deepEqual(await done('www.blog.example', '/own'), ['a', 'app', 'block', 'blog'])
  assert.deepEqual(await done('www.blog.example', '/first'), ['a', 'first', 'block', 'blog'])
  assert.deepEqual(await done('www.blog.example', '/last'), ['z', 'last', 'block', 'blog'])
  assert.deepEqual(await done('www.blog.example', '/'), ['otherwise', 'app', 'pass', 'blog'])
  assert.deepEqual(await done('none.example', '/own'), ['otherwise', 'last', 'tag', 'default'])
  // Rules of the same name count apart.
  assert.deepEqual(await done('none.example', '/limit'), ['limit', 'app', 'rate_limit', 'default'])
  assert.equal(sightings.at(-1)!.limited, false)
  assert.deepEqual(await done('shop.example', '/limit'), ['limit', 'app', 'rate_limit', 'shop'])
  assert.equal(sightings.at(-1)!.limited, false)
})

/** A worker with two upstreams that answer with their names. It has no apps until the first `publish`. */
async function serving(t: Test, app: string | null) {
  const other = createServer((_, response) => response.end('blog')).listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const { bus, log, lines, settings, sightings } = await surroundings(t, (_, response) =>
    response.end('default'),
  )
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
  const upstreams = [...settings.upstreams, { ...upstreamSettings(url), name: 'blog' }]
  const plainListen = { host: '127.0.0.1', port: 0 }
  const worker = new SingleWorker({ ...settings, app, upstreams, plainListen }, bus, log)
  const { plainListen: at } = await worker.start(liveState([pair]))
  t.teardown(() => worker.drain(0))
  let number = 1
  const publish = (policy: unknown, appPolicies: readonly AppPolicyText[] = []) =>
    bus.publish(makeSnapshot(++number, policy, Date.now(), null, { apps: APPS, appPolicies }))
  const ask = async (host: string, path = '/'): Promise<string> => {
    const [response] = await once(request({ ...at, path, headers: { host }, agent: false }).end(), 'response')
    return text(response)
  }
  return { ask, publish, sightings, lines }
}
