import { once } from 'node:events'
import type { Server } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { StartupConfig } from '../config.ts'
import type { HostPort } from '../config-kinds.ts'
import { Fault } from '../fault.ts'
import { InjectMetrics } from '../inject/inject-metrics.ts'
import type { SidecarSettings } from '../inject/sidecar.ts'
import { createWebhookServer, useCertificate } from '../inject/webhook-server.ts'
import type { Log } from '../log.ts'
import { createManageServer } from '../manage/app.ts'
import { Metrics, metricsText } from '../metrics.ts'
import { addProcessMetrics } from '../proxy/worker-metrics.ts'
import { certificateInFiles, type InjectCertificate, ownCertificate } from './inject-certificate.ts'
import type { Io } from './io.ts'
import { addReloadMetrics } from './reload.ts'
import { version } from './version.ts'

export interface InjectSettings {
  readonly config: StartupConfig
  readonly sidecar: SidecarSettings
}

/** The webhook's port and the one for health and metrics, and the certificate of the first. */
export class InjectServer {
  readonly #config: StartupConfig
  readonly #log: Log
  readonly #server: ReturnType<typeof createWebhookServer>
  readonly #manage: ReturnType<typeof createManageServer>
  readonly #counts = new InjectMetrics()
  readonly #metrics = new Metrics()
  readonly #certificate: InjectCertificate
  #state: 'starting' | 'serving' | 'draining' = 'starting'

  constructor({ config, sidecar }: InjectSettings, env: Io['env'], log: Log) {
    this.#config = config
    this.#log = log
    const current = version()
    this.#server = createWebhookServer({ sidecar, version: current, metrics: this.#counts, log })
    this.#manage = createManageServer({
      unready: () => [...(this.#state === 'serving' ? [] : [this.#state]), ...this.#certificate.unready()],
      metrics: async () => metricsText([await this.#metrics.read()]),
      failed: (error) => log.error('a request for health or metrics failed', { error }),
    })
    const links = { use: this.#use, counts: this.#counts, log }
    this.#certificate =
      config.inject.certificate === null
        ? ownCertificate(config, env, links)
        : certificateInFiles(config, links)
    this.#metrics.gauge('build_info', 'Which program this is.', 'first', () => [
      { labels: { version: current, node: process.versions.node }, value: 1 },
    ])
    addProcessMetrics(this.#metrics)
    this.#counts.addTo(this.#metrics)
    addReloadMetrics(this.#metrics, () => this.#certificate.statuses())
  }

  /** Resolves when the API server can ask; with `false` when it is told to stop before. */
  async start(stop: Promise<unknown>): Promise<boolean> {
    // First of all, so that a probe is answered while there is no certificate yet.
    await listen(this.#manage, this.#config.manage.listen, '--manage')
    const hasCertificate = this.#certificate.start().then(() => true)
    if (!(await Promise.race([hasCertificate, stop.then(() => false)]))) return false
    await listen(this.#server, this.#config.inject.listen, '--listen')
    this.#state = 'serving'
    this.#log.info('ready', {
      version: version(),
      listen: placeOf(this.#server),
      manage: placeOf(this.#manage),
      image: this.#config.inject.sidecar.image,
    })
    return true
  }

  reload(): void {
    this.#certificate.reload()
  }

  /** Says first that no more should come, as the API server goes on asking for as long as it has not heard of it. */
  async stop(graceMs: number): Promise<void> {
    this.#state = 'draining'
    if (graceMs > 0) await wait(graceMs)
    this.#certificate.close()
    const closed = this.#server.listening ? once(this.#server, 'close') : null
    this.#server.close()
    this.#server.closeIdleConnections()
    await Promise.race([closed, wait(DRAIN_MS, undefined, { ref: false })])
  }

  kill(): void {
    this.#certificate.close()
    for (const server of [this.#server, this.#manage]) {
      server.close()
      server.closeAllConnections()
    }
  }

  readonly #use = (pair: { readonly chain: string; readonly key: string }): void => {
    useCertificate(this.#server, pair)
  }
}

async function listen(server: Server, address: HostPort, flag: string): Promise<void> {
  try {
    server.listen({ ...address })
    await once(server, 'listening')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why = code === 'EADDRINUSE' ? 'another program listens there' : (error as Error).message
    throw new Fault(
      'LISTEN_FAILED',
      `cannot listen on ${address.host} port ${address.port}: ${why}; give it another place with ${flag}`,
    )
  }
}

function placeOf(server: Server): string {
  const place = server.address()
  return typeof place === 'object' && place !== null ? `${place.address}:${place.port}` : ''
}

/** The API server waits no longer than that for an answer. */
const DRAIN_MS = 10_000
