import { HTTP2_SERVER } from './front.ts'
import { HEADER_SETTINGS } from './test-headers.ts'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { NO_PAYMENTS } from '../../src/payment/payment-terms.ts'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { Test } from 'tap'
import { createLogTo } from '../../src/shared/log.ts'
import { FULL_PRIVACY } from '../../src/plane/privacy/client-privacy.ts'
import { LocalManageBus } from '../../src/plane/local-bus.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { makeSnapshot } from '../../src/plane/snapshot.ts'
import type { LiveState } from '../../src/proxy/worker/data-plane.ts'
import type { KeyPair } from '../../src/proxy/tls/key-pair.ts'
import type { UpstreamSettings } from '../../src/proxy/upstream/upstream.ts'
import type { WorkerSettings } from '../../src/proxy/worker/worker-settings.ts'
import { LIMITS } from './front.ts'
import { testCa, testLeaf, testPair } from './test-certificates.ts'
import { ANY_HOST } from './test-gate.ts'
import { settingsFor } from './upstream-fixture.ts'

export const CA = await testCa()

/** Good for localhost and everything under example.test. */
export async function goodPair(): Promise<KeyPair> {
  return testPair(await testLeaf(CA, ['localhost', 'app.example.test']), ['localhost', 'app.example.test'])
}

export function liveState(keyPairs: readonly KeyPair[]): LiveState {
  return { keyPairs, ticketKeys: randomBytes(48), signingKey: null }
}

/** Everything that a worker or a pool needs to start, and its messages. */
export async function surroundings(t: Test, app: RequestListener, more: Partial<WorkerSettings> = {}) {
  const upstream = createServer(app)
  upstream.listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  t.teardown(() => {
    upstream.closeAllConnections()
    upstream.close()
  })
  const written: string[] = []
  const log = createLogTo('info', { write: (line) => void written.push(line) })
  const lines = (): Record<string, unknown>[] => written.map((line) => JSON.parse(line))
  const bus = new LocalManageBus()
  const sightings: Sighting[] = []
  bus.onSightings((batch) => void sightings.push(...batch))
  let number = 0
  const judgeBy = (policy: unknown) => bus.publish(makeSnapshot(++number, policy, Date.now()))
  judgeBy({ rules: [] })
  const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  const settings = workerSettings({ upstreams: [upstreamSettings(url)], ...more })
  return { upstream, log, lines, bus, sightings, judgeBy, settings }
}

export function workerSettings(more: Partial<WorkerSettings>): WorkerSettings {
  return {
    listen: { host: '127.0.0.1', port: 0 },
    plainListen: null,
    app: null,
    upstreams: [],
    trustedProxies: [],
    proxyProtocol: 'off',
    ja4Hops: { addresses: [], header: 'x-ja4-fingerprint' },
    headers: HEADER_SETTINGS,
    tracing: null,
    sampling: null,
    privacy: FULL_PRIVACY,
    tls: { minVersion: 'TLSv1.2', clientCertificates: 'off', clientCa: null },
    hosts: ANY_HOST,
    limits: LIMITS,
    mcpMessageBytesMax: 1_048_576,
    upgradeIdleTimeoutMs: 0,
    websocketGraceMs: 1000,
    drainTimeoutMs: 5000,
    signatureKey: null,
    fail: 'open',
    ready: 'always',
    fastLane: true,
    http2: HTTP2_SERVER,
    accessLog: null,
    payments: NO_PAYMENTS,
    publish: { hasRobots: false, hasUsage: false, hasSignals: false, rslPath: null },
    ja4plus: true,
    identity: {
      ...{ areStrangersAsked: true, areNetworksKnown: false, agents: [] },
      ...{
        isSignatureChecked: true,
        isPlaceAsked: true,
        needsNonce: false,
        readsSignatureKey: false,
        allowPrivate: true,
        hosts: [],
      },
    },
    log: { level: 'silent', perSecond: null, format: 'json' },
    ...more,
  }
}

export function upstreamSettings(url: string, more: Partial<UpstreamSettings> = {}): UpstreamSettings {
  return settingsFor([url], { headTimeoutMs: 60_000, ...more })
}

/** For what says no event: looks until it is so. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await wait(5)
}
