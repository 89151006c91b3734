import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Server } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { StartupConfig } from '../../config/config.ts'
import type { HostPort } from '../../config/network-kinds.ts'
import { Fault } from '../../shared/fault.ts'
import { InjectMetrics } from '../../inject/inject-metrics.ts'
import type { SidecarSettings } from '../../inject/sidecar.ts'
import { createWebhookServer, useCertificate } from '../../inject/webhook-server.ts'
import type { Log } from '../../shared/log.ts'
import { Metrics, metricsText } from '../../shared/metrics.ts'
import { reasonsOfState, type UnreadyReason } from '../../plane/readiness.ts'
import { addProcessMetrics } from '../../proxy/worker/worker-metrics.ts'
import { certificateInFiles, type InjectCertificate, ownCertificate } from './inject-certificate.ts'
import { FileWatch } from '../file-watch.ts'
import type { Io } from '../../terminal/io.ts'
import { ManagePort } from '../manage-port.ts'
import { addReadinessMetrics } from '../readiness.ts'
import { addReloadMetrics, type Reloader } from '../reload.ts'
import { portSettings } from '../startup.ts'
import { version } from '../../shared/package-files.ts'

export interface InjectSettings {
  readonly config: StartupConfig
  readonly sidecar: SidecarSettings
}

/** Runs the webhook's port, its certificate, and the port for health and metrics. */
export class InjectServer {
  readonly #config: StartupConfig
  readonly #log: Log
  readonly #server: ReturnType<typeof createWebhookServer>
  readonly #port: ManagePort
  readonly #metrics = new Metrics()
  readonly #certificate: InjectCertificate
  #reloaders: readonly Reloader<unknown>[] = []
  #watch: FileWatch | null = null
  #state: 'starting' | 'serving' | 'draining' = 'starting'

  /**
   * Resolves when the API server can send requests. Rejects with a Fault that says
   * what to do, after cleaning up.
   */
  static async start(settings: InjectSettings, env: Io['env'], log: Log): Promise<InjectServer> {
    const server = new InjectServer(settings, env, log)
    try {
      await server.#start()
      return server
    } catch (error) {
      server.kill()
      throw error
    }
  }

  private constructor({ config, sidecar }: InjectSettings, env: Io['env'], log: Log) {
    this.#config = config
    this.#log = log
    const counts = new InjectMetrics()
    this.#server = createWebhookServer({ sidecar, version: version(), metrics: counts, log })
    this.#port = new ManagePort(
      { ...portSettings(config), dataFolder: config.data.dir },
      [],
      {
        unready: () => this.#unready(),
        metrics: async (type) => metricsText([this.#metrics.read()], type),
      },
      log,
    )
    const links = { use: this.#use, counts, log }
    const { certificate } = config.inject
    this.#certificate =
      certificate === null
        ? ownCertificate(config, env, links)
        : certificateInFiles(config, certificate, links)
    counts.addTo(this.#metrics)
    this.#addMetrics()
  }

  sayReady(): void {
    this.#log.info('ready', {
      version: version(),
      listen: placeOf(addressOf(this.#server)),
      manage: placeOf(this.#port.address),
      image: this.#config.inject.sidecar.image,
    })
  }

  reload(): void {
    this.#look(true)
  }

  /** Reports unready first, because the API server sends requests until it notices. */
  async stop(graceMs: number): Promise<void> {
    this.#state = 'draining'
    if (graceMs > 0) await wait(graceMs)
    const closed = once(this.#server, 'close')
    this.#server.close()
    await Promise.race([closed, wait(DRAIN_MS, undefined, { ref: false })])
    this.kill()
  }

  kill(): void {
    this.#watch?.close()
    this.#certificate.close()
    this.#server.close()
    this.#server.closeAllConnections()
    this.#port.close()
    this.#port.closeConnections()
  }

  async #start(): Promise<void> {
    // Opens this port first, so that probes are answered while there is no certificate yet.
    const ofPort = await this.#port.start()
    const ofCertificate = await this.#certificate.start()
    await listen(this.#server, this.#config.inject.listen)
    this.#reloaders = [...ofPort, ...ofCertificate]
    const files = await Promise.all(this.#reloaders.map((reloader) => reloader.files()))
    this.#watch = new FileWatch(files.flat(), () => this.#look(false))
    this.#look(false) // finds changes since the files were loaded
    this.#state = 'serving'
  }

  readonly #use = (pair: { readonly chain: string; readonly key: string }): void => {
    useCertificate(this.#server, pair)
  }

  #unready(): readonly UnreadyReason[] {
    const ofCertificate = this.#certificate.unready()
    return [
      ...reasonsOfState(this.#state),
      ...ofCertificate.map((detail) => ({ code: 'certificate' as const, detail })),
    ]
  }

  #look(isAskedFor: boolean): void {
    for (const reloader of this.#reloaders) void reloader.check(isAskedFor)
  }

  #addMetrics(): void {
    this.#metrics.gauge('build_info', 'The version of the program.', 'first', () => [
      { labels: { version: version(), node: process.versions.node }, value: 1 },
    ])
    addReadinessMetrics(this.#metrics, () => this.#unready())
    addProcessMetrics(this.#metrics)
    this.#port.addMetrics(this.#metrics)
    addReloadMetrics(this.#metrics, () => this.#reloaders.map(({ status }) => status))
  }
}

async function listen(server: Server, address: HostPort): Promise<void> {
  try {
    server.listen({ ...address })
    await once(server, 'listening')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why = code === 'EADDRINUSE' ? 'another program listens there' : (error as Error).message
    const place = `${address.host} port ${address.port}`
    throw new Fault(
      'LISTEN_FAILED',
      `the webhook cannot listen on ${place}: ${why}; give it another with --listen`,
    )
  }
}

function addressOf(server: Server): HostPort {
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  return { host: address.address, port: address.port }
}

function placeOf({ host, port }: HostPort): string {
  return `${host}:${port}`
}

/** The API server waits at most this long for a response. */
const DRAIN_MS = 10_000
