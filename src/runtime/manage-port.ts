import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { Fault } from '../shared/fault.ts'
import type { Log } from '../shared/log.ts'
import { createManageServer, type FrontSettings, type ManageContext } from '../manage/app.ts'
import { type ManageServer, useCertificate } from '../manage/http/front/server.ts'
import { ManageTraffic } from '../manage/http/front/traffic.ts'
import type { Metrics } from '../shared/metrics.ts'
import type { KeyPairSource } from '../proxy/tls/key-pair.ts'
import { CertificatePart } from './live-parts.ts'
import { Reloader } from './reload.ts'
import type { ListenAddress } from '../shared/listen-address.ts'

export interface ManagePortSettings {
  readonly listen: ListenAddress
  readonly front: FrontSettings
  /** `null`: no TLS. */
  readonly certificate: KeyPairSource | null
  readonly isAccessLogged: boolean
  readonly dataFolder: string
}

/** The port for probes, metrics and the API. */
export class ManagePort {
  readonly traffic: ManageTraffic
  readonly #settings: ManagePortSettings
  readonly #log: Log
  readonly #server: ManageServer
  readonly #certificate: CertificatePart | null

  constructor(
    settings: ManagePortSettings,
    operations: readonly string[],
    links: Omit<ManageContext, 'failed' | 'answered' | 'refusedProxyHeader'>,
    log: Log,
  ) {
    this.#settings = settings
    this.#log = log
    const { certificate, dataFolder, front, isAccessLogged } = settings
    this.#certificate =
      certificate === null
        ? null
        : new CertificatePart('manage-certificate', [certificate], dataFolder, log, ([pair]) =>
            useCertificate(this.#server, pair!),
          )
    this.traffic = new ManageTraffic(operations, isAccessLogged, log)
    this.#server = createManageServer(
      {
        ...links,
        failed: (error) => log.error('the management plane failed at a request', { error }),
        answered: (visit) => this.traffic.answered(visit),
        refusedProxyHeader: (fault) => this.traffic.refusedProxyHeader(fault),
      },
      front,
    )
  }

  get address(): ListenAddress {
    const { address: host, port } = this.#server.address() as AddressInfo
    return { host, port }
  }

  get certificates(): CertificatePart['inUse'] {
    return this.#certificate?.inUse ?? []
  }

  /** Resolves when requests are answered, with the reloaders for its files. */
  async start(): Promise<readonly Reloader<unknown>[]> {
    const certificate = this.#certificate === null ? null : await Reloader.load(this.#certificate, this.#log)
    if (certificate !== null) useCertificate(this.#server, certificate.value[0]!)
    await listen(this.#server, this.#settings.listen)
    return certificate === null ? [] : [certificate.reloader as Reloader<unknown>]
  }

  addMetrics(metrics: Metrics): void {
    this.traffic.addMetrics(metrics)
  }

  /** Stops accepting connections. */
  close(): void {
    this.#server.close()
  }

  closeConnections(): void {
    this.#server.closeAllConnections()
  }
}

async function listen(server: ManageServer, address: ListenAddress): Promise<void> {
  try {
    server.listen({ ...address })
    await once(server, 'listening')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const place = `${address.host} port ${address.port}`
    const why = code === 'EADDRINUSE' ? 'another program listens there' : (error as Error).message
    throw new Fault(
      'LISTEN_FAILED',
      `the management plane cannot listen on ${place}: ${why}; give it another with --manage`,
    )
  }
}
