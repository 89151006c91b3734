import { join } from 'node:path'
import { PlaceLookups } from '../../identity/address/place-lookups.ts'
import { ReverseDns } from '../../identity/address/reverse-dns.ts'
import { Registries } from '../../identity/cards/registries.ts'
import { rangesIn } from '../../identity/address/ranges-document.ts'
import { fetchCode } from '../../identity/fetch/guarded-get.ts'
import { DocumentMetrics } from '../../identity/fetch/document-metrics.ts'
import { Investigations } from '../../identity/verify/investigations.ts'
import type { AsnFile } from '../../identity/address/asn-file.ts'
import { KeyDirectories } from '../../identity/verify/key-directories.ts'
import { ReplayFloor } from '../../identity/verify/replay-floor.ts'
import { SKEW_S } from '../../identity/verify/web-bot-auth.ts'
import type { Log } from '../../shared/log.ts'
import type { Metrics } from '../../shared/metrics.ts'
import type { GatewaySettings } from './gateway-settings.ts'
import { AsnPart } from '../live-parts.ts'
import { Reloader } from '../reload.ts'

/** How claims of agents are checked for all workers: keys, names and networks. */
export class AgentProofs {
  readonly documentMetrics = new DocumentMetrics()
  /** `null`: there is no list of networks. */
  readonly #asnFile: AsnPart | null
  readonly investigations: Investigations
  readonly #registries: Registries
  readonly #isOn: boolean
  readonly #places: PlaceLookups | null

  constructor({ identity, dataFolder }: Pick<GatewaySettings, 'identity' | 'dataFolder'>, log: Log) {
    const { reverseDns, resolvers, asnFile } = identity
    this.#isOn = identity.mode !== 'off'
    this.#asnFile = asnFile === null ? null : new AsnPart(asnFile)
    const nowMs = Date.now
    const startedMs = Date.now() - performance.now()
    this.#places =
      reverseDns || asnFile !== null
        ? new PlaceLookups({
            dns: reverseDns ? new ReverseDns({ resolvers }) : null,
            networks: () => this.networks,
            nowMs,
          })
        : null
    const fetching = { ...identity, nowMs, log, metrics: this.documentMetrics }
    this.#registries = new Registries({
      ...fetching,
      urls: identity.registries,
    })
    this.investigations = new Investigations({
      directories: new KeyDirectories({ ...fetching, registries: this.#registries, rangesIn }),
      places: this.#places,
      openFloor: () => {
        const file = join(dataFolder, 'signature-uses.json')
        return ReplayFloor.open({ file, startedMs, skewS: SKEW_S, nowMs }, log)
      },
      nowMs,
    })
  }

  /** The list of networks in use; `null`: not configured. */
  get networks(): AsnFile | null {
    return this.#asnFile?.inUse ?? null
  }

  /** Loads the list of networks. `null`: not configured. */
  async load(log: Log): Promise<{ readonly reloader: Reloader<AsnFile> } | null> {
    if (this.#asnFile === null) return null
    const loaded = await Reloader.load(this.#asnFile, log)
    this.#asnFile.use(loaded.value)
    return loaded
  }

  /** Begins to fetch what is fetched without a cause, and loads the code for it. */
  async start(): Promise<void> {
    if (!this.#isOn) return
    await fetchCode()
    this.#registries.start()
  }

  addMetrics(metrics: Metrics): void {
    this.#registries.addMetrics(metrics)
    this.documentMetrics.addTo(metrics)
    this.investigations.addMetrics(metrics)
    this.#places?.addMetrics(metrics)
    if (this.#asnFile !== null) addAsnFileMetrics(metrics, this.#asnFile)
  }
}

function addAsnFileMetrics(metrics: Metrics, part: AsnPart): void {
  const built = 'When the list of networks in use was built (identity.asn_file).'
  metrics.gauge('asn_file_built_timestamp_seconds', built, 'first', () => {
    const { inUse } = part
    return inUse === null ? [] : [{ labels: {}, value: inUse.builtAtS }]
  })
}
