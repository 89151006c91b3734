import type { AsnFile } from '../../identity/address/asn-file.ts'
import type { AddressHasher } from '../../plane/privacy/address-form.ts'
import type { PaymentTerms } from '../../payment/payment-terms.ts'
import type { WorkerStatus } from '../../plane/worker-status.ts'
import type { AuthContext } from '../auth/context.ts'
import type { OpenidProvider } from '../auth/people/openid-provider.ts'
import type { PasswordHasher } from '../auth/people/password-hash.ts'
import type { EventsContext } from '../events/context.ts'
import type { KnownRobots } from '../events/event-sources.ts'
import type { PaymentEvents } from '../events/payment-events.ts'
import type { Sinks } from '../events/sinks/sinks.ts'
import type { EventTail } from '../events/event-tail.ts'
import type { RequestFeed } from '../intake/request-feed.ts'
import type { TrafficPulse } from '../intake/traffic-pulse.ts'
import type { JobsContext } from '../jobs/context.ts'
import type { SignatureAgentCards } from '../judging/signature-agent-cards.ts'
import type { JudgingContext } from '../judging/context.ts'
import type { AppKeeper } from '../publish/app-keeper.ts'
import type { AppPolicies } from '../publish/app-policies.ts'
import type { FleetView } from '../publish/fleet-view.ts'
import type { LiveSettings } from '../publish/live-settings.ts'
import type { PolicyFile, PolicyKeeper } from '../publish/policy-keeper.ts'

/** The parts of the management plane that the operations of the API need, with those of the rooms below. */
export interface ApiContext extends AuthContext, JobsContext, JudgingContext, EventsContext {
  readonly version: string
  readonly settings: LiveSettings
  /** Hash addresses as the proxies do, with the present key and earlier ones. Empty: no key is known. */
  readonly addressHashers: readonly AddressHasher[]
  /** The policy in force and its origin. */
  readonly policy: PolicyFile | PolicyKeeper
  readonly apps: AppKeeper
  readonly appPolicies: AppPolicies
  /** The id of the app of every request (`proxy.app`); `null`: its host decides. */
  readonly fixedApp: string | null
  /** The names that a rule may route to; `null`: remote proxies have their own. */
  readonly upstreams: readonly string[] | null
  /** Reports changes of payments. */
  readonly paymentNews: Pick<PaymentEvents, 'changed'>
  /** The signature agent cards of known agents. */
  readonly cards: SignatureAgentCards
  /** How payments are taken. */
  readonly payments: PaymentTerms
  /** The external OpenID provider for sign-in; `null`: none. */
  readonly elsewhere: OpenidProvider | null
  /** Shared, so that only a few passwords are hashed at a time. */
  readonly passwords: PasswordHasher
  /** The knowledge about remote proxies; `null`: all workers belong to this gateway. */
  readonly fleet: Fleet | null
  /** The sinks of events of this process. */
  readonly sinks: Pick<Sinks, 'places'>
  /** New events, for listeners. */
  readonly tail: EventTail
  /** Requests as they arrive, for listeners. */
  readonly requests: RequestFeed
  /** The amount of traffic, for listeners. */
  readonly pulse: TrafficPulse
  /** What is known of the robots.txt that crawlers get. */
  readonly robots: () => KnownRobots
  /** Runs queued tasks. Wake it after queueing one. */
  readonly tasks: { wake(): void }
  /** The list of networks of `identity.asn_file`; `null`: none is set. */
  networks(): AsnFile | null
  /** The workers of this gateway. */
  workers(): readonly WorkerStatus[]
}

/** The knowledge of a manager about remote proxies. */
export interface Fleet {
  isLeading(): boolean
  readonly view: FleetView
}
