import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer } from 'node:tls'
import type { AddressInfo } from 'node:net'
import { type Test, test } from 'tap'
import { CertificateKeeper } from '../../src/inject/certificate-keeper.ts'
import { InjectMetrics } from '../../src/inject/inject-metrics.ts'
import { KubernetesApi } from '../../src/inject/kubernetes-api.ts'
import { createLogTo } from '../../src/shared/log.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { FakeApiServer, SECRET, WEBHOOK } from './fake-api-server.ts'

const NAME = 'gatehouse-inject.gate.svc'
const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
/** Real handshakes ask the clock of this machine. */
const START_MS = Date.now()

test('the first replica makes a certificate, and the API server trusts it', async (t) => {
  const { api, replica } = await cluster(t)
  const one = replica()
  assert.match(one.keeper.unready()[0]!, /no certificate yet/)
  await one.keeper.look()
  assert.deepEqual(one.keeper.unready(), [])
  assert.deepEqual([...api.data().keys()].sort(), ['ca.crt', 'ca.key', 'tls.crt', 'tls.key'])
  assert.equal(api.bundles[0], api.data().get('ca.crt'))
  assert.equal(api.bundles[1], '', 'the webhook of another program is left alone')
  await shaken(one, api.bundles[0]!)
  const { asked } = api
  asked.length = 0
  await one.keeper.look()
  assert.deepEqual(asked, [`GET ${SECRET}`, `GET ${WEBHOOK}`], 'nothing is due, nothing is written')
})

test('replicas that start at once agree on one certificate', async (t) => {
  const { api, replica } = await cluster(t)
  api.pauseMs = 30
  const replicas = [replica(), replica(), replica()]
  await Promise.all(replicas.map(({ keeper }) => keeper.look()))
  for (const each of replicas) {
    assert.equal(each.inUse().chain, api.data().get('tls.crt'))
    await shaken(each, api.bundles[0]!)
  }
  assert.equal(api.asked.filter((line) => line.startsWith('POST')).length, 3, 'all of them tried')
  const made = replicas.flatMap(({ said }) => said()).filter(({ step }) => step === 'all')
  assert.equal(made.length, 1, 'and one says that it was the one')
})

test('what the chart has made empty is filled; labels and annotations of others stay', async (t) => {
  const { api, replica } = await cluster(t)
  const metadata = { name: 'gatehouse-inject-certificate', namespace: 'gate', labels: { chart: 'gatehouse' } }
  api.put(SECRET, { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata })
  await replica().keeper.look()
  assert.equal(api.data().size, 4)
  assert.deepEqual(api.objects.get(SECRET)!.metadata['labels'], {
    chart: 'gatehouse',
    'gatehouse.dev/certificate': 'self-made',
  })
})

test('a Secret that another program has filled is not written to', async (t) => {
  const { api, replica } = await cluster(t)
  const metadata = { name: 'gatehouse-inject-certificate', namespace: 'gate' }
  api.put(SECRET, { apiVersion: 'v1', kind: 'Secret', metadata, data: { password: 'aHVudGVyMg==' } })
  const one = replica()
  await assert.rejects(one.keeper.look(), { code: 'SECRET_FOREIGN', message: /gatehouse.dev\/certificate/ })
  assert.deepEqual([...api.data()], [['password', 'hunter2']])
})

test('renews its own certificate if it cannot be read', async (t) => {
  for (const spoil of [
    (data: Record<string, string>) => ({ ...data, 'tls.crt': 'bm9uZQ==' }),
    (data: Record<string, string>) => ({ ...data, 'tls.key': data['ca.key']! }),
    ({ 'ca.key': _, ...data }: Record<string, string>) => data,
    (data: Record<string, string>) => ({ ...data, 'tls.crt': data['ca.crt']!, 'tls.key': data['ca.key']! }),
  ]) {
    const { api, replica } = await cluster(t)
    await replica().keeper.look()
    const secret = api.objects.get(SECRET)!
    api.put(SECRET, { ...secret, data: spoil(secret['data'] as Record<string, string>) })
    const two = replica()
    await two.keeper.look()
    await shaken(two, api.bundles[0]!)
  }
})

test('600 days of two replicas: both are trusted at every look, on either replica', async (t) => {
  const { api, replica, clock } = await cluster(t)
  const [one, two] = [replica(), replica()]
  const seen = { leaves: new Set<string>(), cas: new Set<string>(), bundles: new Set<number>() }
  await one.keeper.look()
  await two.keeper.look()
  for (let hour = 0; hour < 600 * 24; hour += 12) {
    clock.nowMs = START_MS + hour * HOUR_MS
    // Each one misses every second look.
    const looking = hour % 24 === 0 ? one : two
    await looking.keeper.look()
    for (const each of [one, two]) {
      assert.deepEqual(each.keeper.unready(), [], `hour ${hour}`)
      assert.ok(isTrusted(each.inUse().chain, api.bundles[0]!, clock.nowMs), `hour ${hour}`)
      seen.leaves.add(each.inUse().chain)
    }
    seen.cas.add(api.data().get('ca.crt')!)
    seen.bundles.add(api.bundles[0]!.split('BEGIN').length - 1)
  }
  assert.deepEqual([...seen.bundles].sort(), [1, 2], 'a CA comes and goes beside another one')
  assert.equal(seen.cas.size, 3)
  assert.ok(seen.leaves.size >= 9 && seen.leaves.size <= 15, `${seen.leaves.size} leaves`)
})

test('a new CA is announced an hour before it signs, and the old one is trusted for a day after', async (t) => {
  const { api, replica, clock } = await cluster(t)
  const one = replica()
  await one.keeper.look()
  const first = api.data().get('ca.crt')!
  clock.nowMs = START_MS + 246 * DAY_MS
  await one.keeper.look()
  const next = api.data().get('next-ca.crt')!
  assert.equal(api.data().get('ca.crt'), first)
  assert.equal(api.bundles[0], first + next)
  assert.ok(new X509Certificate(one.inUse().chain).verify(new X509Certificate(first).publicKey))
  clock.nowMs += HOUR_MS - 1000
  await one.keeper.look()
  assert.equal(api.data().get('ca.crt'), first, 'not yet')
  clock.nowMs += 2000
  await one.keeper.look()
  assert.equal(api.data().get('ca.crt'), next)
  assert.equal(api.bundles[0], next + first)
  assert.ok(new X509Certificate(one.inUse().chain).verify(new X509Certificate(next).publicKey))
  clock.nowMs += DAY_MS
  await one.keeper.look()
  assert.equal(api.bundles[0], next)
  assert.equal(api.data().has('previous-ca.crt'), false)
})

test('a cluster that was off for years starts anew', async (t) => {
  const { api, replica, clock } = await cluster(t)
  const one = replica()
  await one.keeper.look()
  clock.nowMs = START_MS + 900 * DAY_MS
  assert.match(one.keeper.unready()[0]!, /^the certificate has expired/)
  await one.keeper.look()
  assert.deepEqual(one.keeper.unready(), [])
  assert.ok(isTrusted(one.inUse().chain, api.bundles[0]!, clock.nowMs))
})

test('another CA in the webhook is replaced at the next look', async (t) => {
  const { api, replica } = await cluster(t)
  const one = replica()
  await one.keeper.look()
  const configuration = api.objects.get(WEBHOOK)!
  const webhooks = structuredClone(configuration['webhooks']) as { clientConfig: { caBundle?: string } }[]
  delete webhooks[0]!.clientConfig.caBundle
  api.put(WEBHOOK, { ...configuration, webhooks })
  await one.keeper.look()
  assert.equal(api.bundles[0], api.data().get('ca.crt'))
})

test('a conflict at the webhook is tried again', async (t) => {
  const { api, replica } = await cluster(t)
  let conflicts = 0
  api.intercept = (method) => {
    if (method !== 'PATCH' || conflicts++ >= 2) return undefined
    return { status: conflicts === 1 ? 409 : 422, body: '{"kind":"Status"}' }
  }
  await replica().keeper.look()
  assert.equal(api.bundles[0], api.data().get('ca.crt'))
  assert.equal(conflicts, 3)
})

test('nothing is shown that the API server has not been told of', async (t) => {
  const { api, replica } = await cluster(t)
  api.objects.delete(WEBHOOK)
  const one = replica()
  await assert.rejects(one.keeper.look(), {
    code: 'WEBHOOK_MISSING',
    message: /gatehouse-inject is not there/,
  })
  assert.throws(() => one.inUse())
  const calling = replica({ service: 'gate' })
  api.put(WEBHOOK, { metadata: { name: 'gatehouse-inject' }, webhooks: [] })
  await assert.rejects(calling.keeper.look(), {
    message: /has no webhook that calls the Service gate in gate$/,
  })
})

test('the loop goes on after failures, says each once, and takes the token that is there now', async (t) => {
  const { api, replica } = await cluster(t)
  const one = replica()
  let failures = 0
  api.intercept = () => (failures++ < 2 ? { status: 503, body: 'gone fishing' } : undefined)
  const running = one.keeper.run()
  await one.used
  assert.ok(failures > 2)
  const said = one.said().filter(({ message }) => message === 'the certificate cannot be looked after')
  assert.equal(said.length, 1)
  assert.deepEqual(said[0]!['error'], {
    name: 'Fault',
    code: 'KUBERNETES_REFUSED',
    message: `GET ${SECRET}: 503 `,
  })
  api.useToken('token-2')
  await one.keeper.look()
  one.keeper.close()
  await running
  const text = JSON.stringify(one.said())
  for (const secret of ['PRIVATE', 'token-', api.data().get('ca.key')!.slice(40, 80)])
    assert.ok(!text.includes(secret), secret)
})

async function cluster(t: Test) {
  const api = await FakeApiServer.start(t, temporaryFolder(t))
  const clock = { nowMs: START_MS }
  const replica = (given: { service?: string } = {}) => newReplica(api, clock, given)
  return { api, clock, replica }
}

type Replica = ReturnType<typeof newReplica>

function newReplica(api: FakeApiServer, clock: { nowMs: number }, given: { service?: string }) {
  const lines: string[] = []
  const used = Promise.withResolvers<void>()
  let pair: { chain: string; key: string } | null = null
  const keeper = new CertificateKeeper(
    {
      service: 'gatehouse-inject',
      namespace: null,
      secret: 'gatehouse-inject-certificate',
      webhook: 'gatehouse-inject',
      ...given,
    },
    {
      api: new KubernetesApi(api.place),
      use: (given) => {
        pair = given
        used.resolve()
      },
      metrics: new InjectMetrics(),
      log: createLogTo('debug', { write: (line) => lines.push(line) }),
      nowMs: () => clock.nowMs,
    },
  )
  return {
    keeper,
    used: used.promise,
    said: () => lines.map((line): Record<string, unknown> => JSON.parse(line)),
    inUse() {
      assert.ok(pair !== null, 'a certificate is in use')
      return pair
    },
  }
}

/** As an API server would check it at that time: Node's own handshake knows only the time it is now. */
function isTrusted(chain: string, bundle: string, nowMs: number): boolean {
  const leaf = new X509Certificate(chain)
  const isValid = (each: X509Certificate) =>
    each.validFromDate.getTime() <= nowMs && each.validToDate.getTime() > nowMs
  const cas = bundle.split(/(?=-----BEGIN)/).map((pem) => new X509Certificate(pem))
  return (
    isValid(leaf) &&
    leaf.checkHost(NAME, { subject: 'never' }) !== undefined &&
    cas.some((ca) => isValid(ca) && leaf.checkIssued(ca) && leaf.verify(ca.publicKey))
  )
}

/** A real handshake of a client that asks for the Service's name and trusts only the bundle. */
async function shaken(replica: Replica, ca: string): Promise<void> {
  const { chain, key } = replica.inUse()
  const server = createServer({ cert: chain, key }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const socket = connect({ host: '127.0.0.1', port, servername: NAME, ca })
  await once(socket, 'secureConnect')
  socket.destroy()
  server.close()
}
