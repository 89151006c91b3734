import type { Brand } from '../shared/brand.ts'

export type SightingId = Brand<string, 'SightingId'>

/** Maximum length of texts from clients. What follows is of no use. */
export const SIGHTING_TEXT_MAX = 1_024

/**
 * One request as one proxy saw it: the only data that proxies send to the management plane. No cookies,
 * tokens or bodies.
 */
export interface Sighting {
  readonly id: SightingId
  readonly seenAtMs: number
  readonly proxy: string
  /** In a form of `privacy.addresses`: see privacy/address-form.ts. */
  readonly address: string
  readonly method: string
  readonly host: string | null
  /** The id of the app that it was for. */
  readonly app: string
  /** Without the query, in a form of `privacy.paths`. */
  readonly path: string
  /** In a form of `privacy.user_agents`. */
  readonly userAgent: string | null
  readonly ja4: string | null
  readonly ja4Source: 'own' | 'hop' | null
  /** Why there is no JA4. */
  readonly noHello: 'not-tls' | 'malformed' | null
  readonly stable: string | null
  readonly ja4s: string | null
  readonly ja4h: string | null
  readonly ja4x: string | null
  readonly http2: string | null
  readonly verdict: string
  readonly agent: string | null
  /** Category of the agent. */
  readonly category: string | null
  /** Purposes of the agent. */
  readonly purposes: readonly string[]
  readonly software: string | null
  readonly confidence: number
  /** How sure the name in `agent` or `software` is; 0 without a name, and from versions without this field. */
  readonly nameConfidence: number
  /** How the identity was proven. */
  readonly verified: string | null
  /** The proven signer as a URL, and the thumbprint of its key; `null`: no proven signature. */
  readonly signer: string | null
  readonly key: string | null
  /**
   * Why the signature is invalid or could not be checked, in the terms of identity/; `null`: valid or
   * unsigned.
   */
  readonly signatureFault: string | null
  /** The claimed signer. Unverified. */
  readonly allegedSigner: string | null
  /** Kinds of evidence, strongest first. */
  readonly evidence: readonly string[]
  readonly rule: string
  /** Of the rule: `first`, `app` or `last`; `null`: a setting has decided, or an earlier version sent it. */
  readonly layer: string | null
  readonly action: string
  /** The rule is on trial and has no effect. */
  readonly dryRun: boolean
  /** The action taken; differs from `action` if `dryRun`. */
  readonly done: string
  /** The request exceeded a rule's `rate_limit` and was refused. */
  readonly limited: boolean
  /** Headers of Gatehouse that the client sent: an attempt to tag itself. */
  readonly forged: readonly string[]
  readonly snapshot: number
  /** What the request shows of a campaign: see SeenRequest in classify/campaign. 0: nothing. */
  readonly requestKind: number
  readonly program: number
  readonly headerOrder: number
  readonly target: number
  /** The campaign that it belongs to, as far as the proxy knew. */
  readonly campaign: string | null
  /** A keyed hash of the client, for campaigns, if `address` is a network. Not stored. `null`: `address` tells it. */
  readonly visitor: number | null
  /**
   * The proxy has counted all requests, and has sent Sightings of this share of those like it: 0.01 is one of a
   * hundred. `null`: the proxy counted none and sent all, so the receiver counts.
   */
  readonly sampled: number | null
  /** The call of an MCP server in its body, without arguments; `null`: none, or no rule asked for it. */
  readonly mcpMethod: string | null
  readonly mcpTool: string | null
}
