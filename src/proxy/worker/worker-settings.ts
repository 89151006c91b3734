import type { PrivacySettings } from '../../plane/privacy/client-privacy.ts'
import type { ListenAddress } from '../../shared/listen-address.ts'
import type { LogSettings } from '../../shared/log.ts'
import type { PaymentTerms } from '../../payment/payment-terms.ts'
import type { HeaderSettings } from '../connection/header-rules.ts'
import type { AccessLogSettings } from '../request/access-log.ts'
import type { HostSettings } from '../request/host-gate.ts'
import type { PublishSettings } from '../request/publish/terms-publisher.ts'
import type { UpstreamSettings } from '../upstream/upstream.ts'
import type { SamplingSettings } from './sampler.ts'
import type { ListenerLimits } from './listener.ts'

/**
 * The start settings of a worker: plain data that can be sent to it. Values that may change later are not
 * included.
 */
export interface WorkerSettings {
  readonly listen: ListenAddress
  readonly plainListen: ListenAddress | null
  /** The app of every request; `null`: by host. */
  readonly app: string | null
  /** The first one is the default. */
  readonly upstreams: readonly UpstreamSettings[]
  readonly trustedProxies: readonly string[]
  readonly proxyProtocol: 'off' | 'optional' | 'required'
  readonly ja4Hops: { readonly addresses: readonly string[]; readonly header: string }
  readonly headers: Omit<HeaderSettings, 'ja4Header'>
  readonly tls: WorkerTlsSettings
  readonly limits: ListenerLimits
  readonly mcpMessageBytesMax: number
  readonly upgradeIdleTimeoutMs: number
  readonly websocketGraceMs: number
  readonly drainTimeoutMs: number
  readonly signatureKey: string | null
  readonly fail: 'open' | 'closed'
  /** Whether an upstream without a healthy target makes the proxy unready. */
  readonly ready: 'always' | 'upstream'
  readonly fastLane: boolean
  readonly http2: 'own' | 'node'
  readonly accessLog: AccessLogSettings | null
  readonly publish: PublishSettings
  /** How payments are taken. */
  readonly payments: PaymentTerms
  readonly ja4plus: boolean
  /** `null`: requests are not traced. */
  readonly tracing: WorkerTracingSettings | null
  /** `null`: all Sightings are sent. */
  readonly sampling: SamplingSettings | null
  readonly privacy: PrivacySettings
  readonly hosts: HostSettings
  readonly identity: WorkerIdentitySettings
  readonly log: LogSettings
}

export interface WorkerTlsSettings {
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
  readonly clientCertificates: 'off' | 'request'
  /** PEM. */
  readonly clientCa: string | null
}

export interface WorkerTracingSettings {
  readonly endpoint: string
  readonly token: string | null
  /** The share of requests to record. */
  readonly sample: number
  readonly service: string
  readonly version: string
}

export interface WorkerIdentitySettings {
  readonly isSignatureChecked: boolean
  readonly areStrangersAsked: boolean
  readonly isPlaceAsked: boolean
  readonly areNetworksKnown: boolean
  readonly needsNonce: boolean
  readonly readsSignatureKey: boolean
  readonly allowPrivate: boolean
  /** Listed agents, besides those of signatures, in the form of readAgentId. */
  readonly agents: readonly string[]
  /** The hosts that signatures may be made for. Empty: those of the certificates. */
  readonly hosts: readonly string[]
}
