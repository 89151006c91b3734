import type { Traffic } from '../../classify/verdict/traffic.ts'
import type { Verdict } from '../../classify/verdict/verdict.ts'
import type { Sighting } from '../../plane/sighting.ts'
import type { Snapshot } from '../../plane/snapshot.ts'
import type { Decision } from '../../policy/decide.ts'
import type { AccessLog } from './access-log.ts'
import type { ClientTimeout } from '../connection/client-timeouts.ts'
import type { ConnectionFailure, SecuredConnection } from '../connection/connection.ts'
import type { HostGate } from './host-gate.ts'
import type { DecisionId, DecisionIds } from '../connection/decision-id.ts'
import type { AddressSet } from '../../wire/ip-address.ts'
import type { TrailersForApp } from '../upstream/forward.ts'
import type { HeaderRules } from '../connection/header-rules.ts'
import type { Prover } from './prover.ts'
import type { RateLimiter } from './rate-limiter.ts'
import type { TagSigner } from './tag-signature.ts'
import type { Tarpit } from './tarpit.ts'
import type { Tracer } from './tracer.ts'
import type { Upgrades } from './upgrade.ts'
import type { UpstreamGroup } from '../upstream/upstream.ts'

/** What a worker judges and serves by. Only `snapshot`, `signer` and the clock ever change. */
export interface ProxyContext {
  /** Which proxy this is, in Sightings. */
  readonly name: string
  snapshot: Snapshot
  /** By name; the first one is where requests go when no rule says otherwise. */
  readonly upstreams: ReadonlyMap<string, UpstreamGroup>
  readonly defaultUpstream: UpstreamGroup
  readonly trusted: AddressSet
  /** Which headers of a client reach the app. */
  readonly headerRules: HeaderRules
  readonly trailersForApp: TrailersForApp
  readonly ja4plus: boolean
  /** What becomes of a TLS client whose hello could not be read. */
  readonly fail: 'open' | 'closed'
  /** `null`: a request may be for any host. */
  readonly hostGate: HostGate | null
  readonly upgradeIdleTimeoutMs: number
  signer: TagSigner | null
  /** `null`: proofs are not looked for. */
  readonly prover: Prover | null
  readonly limiter: RateLimiter
  readonly traffic: Traffic
  readonly tarpit: Tarpit
  readonly upgrades: Upgrades
  readonly ids: DecisionIds
  /** The time of day, up to a beat old: read here, set elsewhere. */
  readonly clock: { readonly nowMs: number }
  /** `null`: requests are not traced. */
  readonly tracer: Tracer | null
  /** `null`: requests are not written to an access log. */
  readonly accessLog: AccessLog | null
  readonly recorder: { record(sighting: Sighting): void }
  readonly metrics: {
    /** 0 for all those whose time is not taken, which are nearly all. */
    detectionBegins(): number
    detectionDone(begunMs: number): void
    /** `status` 0 is a request that got no answer. */
    requestDone(
      request: DoneRequest,
      status: number,
      durationMs: number,
      nowMs: number,
      traceId: string | null,
    ): void
    forgedHeaders(count: number): void
    oddHeaderNames(count: number): void
    connectionFailed(failure: ConnectionFailure): void
    clientTimedOut(timeout: ClientTimeout): void
    connectionSecured(connection: SecuredConnection): void
  }
}

/** What is counted of a request. */
export interface DoneRequest {
  readonly id: DecisionId
  readonly verdict: Verdict
  readonly decision: Decision
}
