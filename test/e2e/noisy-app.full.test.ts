import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { JetStreamProxyBus } from '../../src/plane/jetstream/jetstream-bus.ts'
import { silentLog } from '../../src/shared/log.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { idOf, seen } from '../contract/seen.ts'
import { freshUrl } from '../store/databases.ts'
import { folderFor, freshBusName, startNats } from './engines.ts'
import { asked, eventually, type FleetPlace, startManager } from './fleet.ts'
import type { ServingProcess } from './gatehouse.ts'
import { skipped } from './programs.ts'

const skip = skipped('nats-server')

test('20,000 Sightings a second of one app: those of another overtake them, and none is missing', {
  skip,
}, async (t) => {
  const nats = await startNats(t)
  const place = { nats: nats.url, postgres: await freshUrl('postgres', t), bus: freshBusName() }
  const manager = await startManager(t, place, { GATEHOUSE_BUS_SIGHTINGS_BYTES: '1GiB' })
  const noisy = [0, 1, 2, 3].map((number) => new App(t, place, 'noisy', number))
  const quiet = new App(t, place, 'quiet', 9)
  await eventually(() => quiet.send(1).then(() => true))
  const stop = new AbortController()
  const flood = noisy.map((app) =>
    app.flood(BATCH, (BATCH * 1_000 * noisy.length) / NOISY_A_SECOND, stop.signal),
  )
  const murmur = quiet.flood(QUIET_A_SECOND / 5, 200, stop.signal)
  const lateness = follow(manager, quiet, stop.signal)
  await wait(FLOOD_MS) // a flood of this length
  const [sent, late] = [total(noisy), await requests(manager, 'noisy')]
  stop.abort()
  await Promise.all([...flood, murmur])
  const { worstMs } = await lateness
  const rate = Math.round((sent / FLOOD_MS) * 1_000)
  t.comment(
    `${rate} a second, ${sent - late} of them not counted at the end; quiet at most ${worstMs} ms late`,
  )
  // At most 8 s on a quiet machine, and more than 70 s where the first to come is the first to be served.
  assert.ok(worstMs <= 45_000, `${worstMs} ms late`)
  await eventually(async () => (await requests(manager, 'quiet')) === quiet.sent)
  // Every other one is counted, or is in the metric of those that are not.
  await eventually(async () => (await requests(manager, 'noisy')) + (await lost(manager)) === total(noisy))
  await wait(1_500) // nothing is counted a second time
  assert.equal(await requests(manager, 'quiet'), quiet.sent)
  const kept = await asked(manager, 'GET', '/v1/requests?app=quiet&limit=1')
  assert.equal(kept.requests.length, 1)
})

/** A proxy in front of one app. */
class App {
  sent = 0
  readonly #bus: JetStreamProxyBus
  readonly #name: string
  readonly #process: string

  constructor(t: Test, { nats, bus }: FleetPlace, name: string, number: number) {
    const settings = {
      ...{
        urls: [nats],
        name: bus,
        retryMs: 50,
        credentialsFile: null,
        user: null,
        password: null,
        token: null,
      },
      tls: { caFile: null, certificateFile: null, keyFile: null },
    }
    const id = `${name}${number}`
    this.#bus = new JetStreamProxyBus(settings, id, { folder: folderFor(t, id) }, silentLog())
    this.#name = name
    this.#process = number.toString(16).padStart(12, '0')
    t.teardown(() => this.#bus.closed())
  }

  async send(count: number): Promise<void> {
    const nowMs = Date.now()
    const batch = Array.from({ length: count }, (_, each) => this.#sighting(this.sent + each, nowMs))
    await this.#bus.sendSightings(batch)
    this.sent += count
  }

  /** Sends so many every so often, and makes up for late timers. */
  async flood(count: number, everyMs: number, stop: AbortSignal): Promise<void> {
    const startedMs = performance.now()
    for (let batch = 1; !stop.aborted; batch++) {
      await this.send(count)
      const leftMs = startedMs + batch * everyMs - performance.now()
      if (leftMs > 0) await wait(leftMs)
    }
  }

  #sighting(number: number, nowMs: number): Sighting {
    const random = Math.imul(number + 1, 0x9e3779b1) >>> 0
    return seen(number, {
      ...{ id: idOf(nowMs, number % 0x100_0000, this.#process), seenAtMs: nowMs, app: this.#name },
      ...{ address: `198.51.${random % 100}.${(random >>> 8) % 250}`, path: `/articles/${random % 10_000}` },
      ja4: `t13d1516h2_8daaf615${(random % 200).toString(16).padStart(4, '0')}_b186095e22b6`,
      ja4h: `ge20nn14enus_${(random % 500).toString(16).padStart(12, '0')}_000000000000_000000000000`,
    })
  }
}

/** The longest time from sending to the statistics. */
async function follow(
  manager: ServingProcess,
  app: App,
  stop: AbortSignal,
): Promise<{ readonly worstMs: number }> {
  let worstMs = 0
  while (!stop.aborted) {
    const [sent, startedMs] = [app.sent, performance.now()]
    await eventually(async () => (await requests(manager, 'quiet')) >= sent)
    worstMs = Math.max(worstMs, Math.round(performance.now() - startedMs))
    await wait(100)
  }
  return { worstMs }
}

async function lost({ manage }: ServingProcess): Promise<number> {
  const text = await (await fetch(`${manage}/metrics`)).text()
  assert.ok(!text.includes('gatehouse_sightings_lost_total{app="quiet"}'))
  return Number(/gatehouse_sightings_lost_total\{app="noisy"\} (\d+)/.exec(text)?.[1] ?? 0)
}

function total(apps: readonly App[]): number {
  return apps.reduce((sum, { sent }) => sum + sent, 0)
}

async function requests(manager: ServingProcess, app: string): Promise<number> {
  return (await asked(manager, 'GET', `/v1/stats?window=1h&app=${app}`)).detection.requests
}

const NOISY_A_SECOND = 20_000
const QUIET_A_SECOND = 50
const BATCH = 512
const FLOOD_MS = 40_000
