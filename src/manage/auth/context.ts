import type { Log } from '../../shared/log.ts'
import type { Store } from '../../store/store.ts'
import type { OpenStreams } from '../http/open-streams.ts'
import type { RateLimits } from '../limits/rate-limits.ts'
import type { AgentIdentities } from './agent-identity.ts'
import type { ApiKeys } from './api-keys.ts'
import type { BootstrapKey } from './bootstrap-key.ts'
import type { Gnap } from './gnap/gnap.ts'
import type { MinuteThrottle } from './minute-throttle.ts'
import type { OAuth } from './oauth/oauth.ts'
import type { Sealer } from './sealer.ts'
import type { Trust } from './trust.ts'

/** The parts of the management plane that authentication and the endpoints for access need. */
export interface AuthContext {
  readonly store: Store
  readonly log: Log
  /** The external URL of the API: `https://gate.example`, without a trailing slash. */
  readonly publicUrl: string
  readonly apiKeys: ApiKeys
  /** `null`: not configured. */
  readonly bootstrapKey: BootstrapKey | null
  /** What agents and keys may do. */
  readonly trust: Trust
  readonly agents: AgentIdentities
  readonly gnap: Gnap
  readonly oauth: OAuth
  readonly rateLimits: Pick<RateLimits, 'count'>
  readonly failureThrottle: MinuteThrottle
  /** Encrypts secrets that have to be decrypted later. */
  readonly sealer: Sealer
  /** The open streaming responses. */
  readonly streams: OpenStreams
  nowMs(): number
}
