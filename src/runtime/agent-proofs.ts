import { join } from 'node:path'
import { PlaceLookups } from '../identity/address/place-lookups.ts'
import { ReverseDns } from '../identity/address/reverse-dns.ts'
import { DocumentMetrics } from '../identity/fetch/document-metrics.ts'
import { Investigations } from '../identity/verify/investigations.ts'
import { KeyDirectories } from '../identity/verify/key-directories.ts'
import { ReplayFloor } from '../identity/verify/replay-floor.ts'
import { SKEW_S } from '../identity/verify/web-bot-auth.ts'
import type { Log } from '../shared/log.ts'
import type { Metrics } from '../shared/metrics.ts'
import type { GatewaySettings } from './gateway-settings.ts'
import { AsnPart } from './live-parts.ts'

/** How claims of agents are checked for all workers: keys, names and networks. */
export class AgentProofs {
  readonly documentMetrics = new DocumentMetrics()
  /** `null`: there is no list of networks. */
  readonly asnFile: AsnPart | null
  readonly investigations: Investigations
  readonly #places: PlaceLookups | null

  constructor({ identity, dataFolder }: Pick<GatewaySettings, 'identity' | 'dataFolder'>, log: Log) {
    const { reverseDns, resolvers, asnFile } = identity
    this.asnFile = asnFile === null ? null : new AsnPart(asnFile)
    const nowMs = Date.now
    const startedMs = Date.now() - performance.now()
    this.#places =
      reverseDns || asnFile !== null
        ? new PlaceLookups({
            dns: reverseDns ? new ReverseDns({ resolvers }) : null,
            networks: () => this.asnFile?.inUse ?? null,
            nowMs,
          })
        : null
    this.investigations = new Investigations({
      directories: new KeyDirectories({ ...identity, nowMs, log, metrics: this.documentMetrics }),
      places: this.#places,
      openFloor: () => {
        const file = join(dataFolder, 'signature-uses.json')
        return ReplayFloor.open({ file, startedMs, skewS: SKEW_S, nowMs }, log)
      },
      nowMs,
    })
  }

  addMetrics(metrics: Metrics): void {
    this.documentMetrics.addTo(metrics)
    this.investigations.addMetrics(metrics)
    this.#places?.addMetrics(metrics)
  }
}
