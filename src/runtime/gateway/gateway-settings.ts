import type { App } from '../../apps/app.ts'
import type { SigningConfig } from '../../config/identity.ts'
import type { LogSettings } from '../../shared/log.ts'
import type { SightingFileSettings } from '../../manage/intake/sighting-file.ts'
import type { ManagementSettings } from '../../manage/management-settings.ts'
import type { FeedSettings } from '../../manage/publish/feed-puller.ts'
import type { DirectorySettings } from '../../identity/verify/key-directories.ts'
import type { FleetProxySettings } from '../../plane/fleet-proxy.ts'
import type { KeyPairSource } from '../../proxy/tls/key-pair.ts'
import type { WorkerSettings } from '../../proxy/worker/worker-settings.ts'
import type { ManagePortSettings } from '../manage-port.ts'
import type { OwnSources } from '../live-parts.ts'

export interface GatewaySettings {
  readonly version: string
  /** SHA-256 of the settings, in hexadecimal. */
  readonly configHash: string
  readonly worker: WorkerSettings
  /** Worker processes for the data plane; `null` serves from this process. */
  readonly workers: number | null
  /** Empty: the development certificate is used. */
  readonly certificates: readonly KeyPairSource[]
  readonly ticketKeyFile: string | null
  /** Empty: those of the managers, or none. */
  readonly apps: readonly App[]
  readonly policyFile: string | null
  /** `null`: sightings are not written to a file. */
  readonly sightings: SightingFileSettings | null
  readonly signatures: OwnSources
  readonly feeds: readonly FeedSettings[]
  readonly signing: SigningConfig
  readonly identity: IdentitySettings
  readonly dataFolder: string
  readonly port: Omit<ManagePortSettings, 'dataFolder'>
  /** `null`: only the data plane runs, and the management port has only probes and metrics. */
  readonly management: ManagementSettings | null
  /** `null`: not a proxy of a fleet, whose managers are other processes. */
  readonly fleet: FleetSettings | null
  readonly log: LogSettings
}

interface FleetSettings extends Omit<FleetProxySettings, 'dataFolder' | 'version'> {
  /** What a proxy does before its first Snapshot from the fleet. */
  readonly firstSnapshot: 'wait' | 'serve'
}

interface IdentitySettings extends Pick<DirectorySettings, 'mode' | 'agents' | 'allowPrivate'> {
  /** URLs of registries of signature agent cards. */
  readonly registries: readonly string[]
  readonly reverseDns: boolean
  /** Empty: the system's resolvers are used. */
  readonly resolvers: readonly string[]
  /** `null`: there is no list of networks. */
  readonly asnFile: string | null
  /** `null`: published address ranges are not fetched. */
  readonly rangesRefreshMs: number | null
}
