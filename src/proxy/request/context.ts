import type { App } from '../../apps/app.ts'
import type { AppIndex } from '../../apps/app-index.ts'
import { Scratch } from '../../classify/verdict/scratch.ts'
import type { Traffic } from '../../classify/verdict/traffic.ts'
import type { Verdict } from '../../classify/verdict/verdict.ts'
import { NameHashes } from '../../fingerprint/ja4plus/ja4h.ts'
import type { Sighting } from '../../plane/sighting.ts'
import type { Snapshot } from '../../plane/snapshot.ts'
import type { Decision } from '../../policy/decide.ts'
import { PolicyRequest } from '../../policy/request.ts'
import type { AccessLog } from './access-log.ts'
import type { ClientTimeout } from '../connection/client-timeouts.ts'
import type { ConnectionFailure, SecuredConnection } from '../connection/connection.ts'
import type { HostGate } from './host-gate.ts'
import type { DecisionId, DecisionIds } from '../connection/decision-id.ts'
import type { AddressSet } from '../../wire/ip-address.ts'
import type { TrailersForApp } from '../upstream/forward.ts'
import type { HeaderRules } from '../connection/header-rules.ts'
import type { McpMessageReader } from './mcp/message-reader.ts'
import type { Prover } from './prover.ts'
import type { TermsPublisher } from './publish/terms-publisher.ts'
import type { RateLimiter } from './rate-limiter.ts'
import type { TagSigner } from './tag-signature.ts'
import type { Tarpit } from './tarpit.ts'
import type { Toll } from './pay/toll.ts'
import type { Tracer } from './tracer.ts'
import type { Upgrades } from './upgrade.ts'
import type { UpstreamGroup } from '../upstream/upstream.ts'

/**
 * Everything that a worker needs to judge and serve requests. Only `snapshot`, `apps`, `signer` and the clock ever
 * change.
 */
export interface ProxyContext {
  /** The name of this proxy in Sightings. */
  readonly name: string
  snapshot: Snapshot
  /** The apps of the Snapshot. */
  apps: AppIndex
  /** By name. The first one is the default. */
  readonly upstreams: ReadonlyMap<string, UpstreamGroup>
  readonly defaultUpstream: UpstreamGroup
  /** Called for a request whose app has an upstream that this proxy lacks. */
  lacksUpstream(app: App): void
  readonly trusted: AddressSet
  /** Decides which client headers reach the app. */
  readonly headerRules: HeaderRules
  readonly trailersForApp: TrailersForApp
  readonly ja4plus: boolean
  /** How a TLS client is treated whose hello could not be parsed. */
  readonly fail: 'open' | 'closed'
  /** `null`: nothing is published. */
  readonly publisher: TermsPublisher | null
  /** `null`: any host is allowed. */
  readonly hostGate: HostGate | null
  readonly upgradeIdleTimeoutMs: number
  signer: TagSigner | null
  /** `null`: proofs are not checked. */
  readonly prover: Prover | null
  /** Reads messages for apps that are MCP servers. */
  readonly messages: McpMessageReader
  readonly limiter: RateLimiter
  readonly traffic: Traffic
  /** The working memory of judging. Nothing in it outlives the judgement of one request but caches and counts. */
  readonly scratch: JudgingScratch
  readonly tarpit: Tarpit
  readonly toll: Toll
  readonly upgrades: Upgrades
  readonly ids: DecisionIds
  /** The time of day, up to a beat old. Set elsewhere. */
  readonly clock: { readonly nowMs: number }
  /** `null`: requests are not traced. */
  readonly tracer: Tracer | null
  /** `null`: requests are not written to an access log. */
  readonly accessLog: AccessLog | null
  readonly recorder: { record(sighting: Sighting): void }
  readonly metrics: {
    /** Returns 0 for nearly all requests, whose time is not measured. */
    detectionBegins(): number
    detectionDone(begunMs: number): void
    /** `status` 0: the request got no answer. */
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

export class JudgingScratch {
  readonly classification: Scratch
  /** It also counts expressions that fail. */
  readonly policy = new PolicyRequest()
  readonly names = new NameHashes()

  constructor(visitorOf: Scratch['visitorOf'] = null) {
    this.classification = new Scratch(visitorOf)
  }
}

/** The parts of a request that the metrics need. */
export interface DoneRequest {
  readonly id: DecisionId
  readonly app: Pick<App, 'id'>
  readonly verdict: Verdict
  readonly decision: Decision
}
