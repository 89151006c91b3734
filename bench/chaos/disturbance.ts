import type { SoakFiles } from '../soak/files.ts'
import type { Kill } from '../soak/kill.ts'
import type { Failure, Seen } from '../soak/messages.ts'
import type { Random } from '../soak/random.ts'
import type { SmallDisk } from '../../test/e2e/disk.ts'
import type { FaultsFile } from './faults-file.ts'
import type { Fleet } from './fleet-place.ts'
import type { ChaosGateway } from './gateway.ts'
import type { MemoryGroup } from './memory-group.ts'
import type { ReadinessWatch } from './readiness.ts'
import type { AppRelay } from './relay.ts'

/** What disturbances are made of. */
export interface Scene {
  readonly gateway: ChaosGateway
  readonly files: SoakFiles
  readonly faults: FaultsFile
  readonly relays: readonly AppRelay[]
  /** `null`: it may not be mounted here. */
  readonly disk: SmallDisk | null
  /** `null`: not available here. */
  readonly memory: MemoryGroup | null
  readonly readiness: ReadinessWatch
  readonly random: Random
  /** What did not go as it should. */
  readonly problems: string[]
  /** Workers that were killed; failures of their clients are theirs. */
  readonly kills: Kill[]
  /** Something else is done at the same time. */
  readonly isBeside: boolean
}

/** The same of a fleet. */
export interface FleetScene extends Pick<Scene, 'random' | 'problems' | 'kills'> {
  readonly fleet: Fleet
}

/** Something that is done to the gateway or around it, and then is over. */
export interface Disturbance {
  /** What of it chance has chosen, in words. */
  readonly detail: string
  /** For how long it lasts at least. */
  readonly holdMs: number
  /** Once it is over, all is as before after no more than that. */
  readonly recoversMs: number
  begin(): Promise<void>
  end(): Promise<void>
  /** Whether a request may fail in this way while it lasts. */
  accountsFor(failure: Failure, seen: Seen): boolean
  /** Calls of the API may fail while it lasts. */
  readonly harmsApi: boolean
  /** What the probe is to say: always yes; no at least once; or what it likes. */
  readonly readiness: 'yes' | 'no' | 'any'
  /** Whose readiness it is, of a fleet's proxies; of those it does not start anew it is always yes. */
  readonly restarts?: string
  /** What workers have recorded and not delivered may be lost. */
  readonly losesSightings: boolean
}

/** What holds of most of them. */
export const HARMLESS = {
  detail: '',
  holdMs: 1500,
  recoversMs: 20_000,
  end: async () => undefined,
  accountsFor: () => false,
  harmsApi: false,
  readiness: 'yes',
  losesSightings: false,
} as const satisfies Partial<Disturbance>

/** It came to nothing before a request was sent. */
export function hadNoConnection({ id }: Failure): boolean {
  return id === null
}

/** A connection of HTTP/1 that was idle was closed just as the request was sent, which the client cannot know; the request had no effect. */
export function isUnheard({ what }: Failure, { times }: Seen): boolean {
  return what.startsWith('h1: no answer') && times === 0
}
