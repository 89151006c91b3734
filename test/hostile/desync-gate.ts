import assert from 'node:assert/strict'
import type { Test } from 'tap'
import type { Sighting } from '../../src/plane/sighting.ts'
import { SingleWorker } from '../../src/proxy/worker/single-worker.ts'
import type { UpstreamSettings } from '../../src/proxy/upstream/upstream.ts'
import type { WorkerSettings } from '../../src/proxy/worker/worker-settings.ts'
import { dialPlain, dialTls, LIMITS, type Peer } from '../proxy/front.ts'
import { goodPair, liveState, surroundings, upstreamSettings } from '../proxy/test-worker.ts'

/** All is tried, or what takes no longer than CI may wait. */
export const IS_WHOLE = process.env['HOSTILE'] === 'whole'

/** The readers of client bytes. One more reader is one more line. */
export const FRONTS: Readonly<Record<string, Partial<WorkerSettings>>> = {
  'node:http': { fastLane: false },
  'fast lane': { fastLane: true },
}

/** The readers of HTTP/2. */
export const HTTP2_FRONTS: Readonly<Record<string, Partial<WorkerSettings>>> = {
  'our HTTP/2': { http2: 'own' },
  'node:http2': { http2: 'node' },
}

export type Door = 'plain' | 'tls'

/** A worker with an upstream behind it. One connection carries everything, so that leftovers meet the next request. */
export interface Gate {
  readonly http2: WorkerSettings['http2']
  dial(door: Door, protocol?: 'http/1.1' | 'h2'): Promise<Peer>
  /** Until each request that was decided on has been told of; the worker takes no more. */
  sightings(): Promise<readonly Sighting[]>
}

export async function startGate(
  t: Test,
  url: string,
  front: Partial<WorkerSettings> = {},
  upstream: Partial<UpstreamSettings> = {},
): Promise<Gate> {
  const upstreams = [
    upstreamSettings(url, { connectionsMax: 1, headTimeoutMs: 10_000, keepAliveMs: 0, ...upstream }),
  ]
  const around = await surroundings(t, () => undefined, {
    upstreams,
    plainListen: { host: '127.0.0.1', port: 0 },
    limits: { ...LIMITS, requestsPerConnectionMax: 1e9 },
    ...front,
  })
  const worker = new SingleWorker(around.settings, around.bus, around.log)
  const { listen, plainListen } = await worker.start(liveState([PAIR]))
  t.teardown(() => worker.drain(0))
  return {
    http2: around.settings.http2,
    dial: (door, protocol = 'http/1.1') =>
      door === 'plain'
        ? dialPlain(plainListen!.port)
        : dialTls(listen.port, { ALPNProtocols: [protocol], servername: 'localhost' }),
    async sightings() {
      await worker.drain(DRAIN_MS)
      assert.deepEqual(
        worker.workers().map(({ dropped }) => dropped),
        [0],
      )
      return around.sightings
    },
  }
}

/** What comes late comes too late; nothing that is tried takes as long. */
export async function inTime<T>(promise: Promise<T>, what: () => string): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`nothing comes of ${what()}`)), HANG_MS)
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

const PAIR = await goodPair()
const HANG_MS = 15_000
/** After the last request: this is for the last Sightings, on a busy machine. */
const DRAIN_MS = 10_000
