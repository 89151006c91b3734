import type { Brand } from '../shared/brand.ts'

export type SightingId = Brand<string, 'SightingId'>

/** Of what clients make as long as they like: what comes behind that tells nobody anything. */
export const SIGHTING_TEXT_MAX = 1_024

/** One request as one proxy saw it: the only thing the data plane says to the management plane. No cookie, token or body. */
export interface Sighting {
  readonly id: SightingId
  readonly seenAtMs: number
  readonly proxy: string
  readonly address: string
  readonly method: string
  readonly host: string | null
  /** Without the query. */
  readonly path: string
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
  /** The agent's. */
  readonly category: string | null
  readonly software: string | null
  readonly confidence: number
  /** How the identity was proven. */
  readonly verified: string | null
  /** Who has signed it, as a URL, and the thumbprint of the key; `null` where nobody has proven to. */
  readonly signer: string | null
  readonly key: string | null
  /** Why its signature does not hold, or could not be checked, as identity/ calls it; `null` where it does, or there is none. */
  readonly signatureFault: string | null
  /** Who that one is said to be of: nobody's word. */
  readonly allegedSigner: string | null
  /** Its kinds, strongest first. */
  readonly evidence: readonly string[]
  readonly rule: string
  readonly action: string
  /** The rule only says what it would have done. */
  readonly dryRun: boolean
  /** What was done: another than `action` where `dryRun`. */
  readonly done: string
  /** It was over the limit of a rule (`rate_limit`), and did not get what it asked for. */
  readonly limited: boolean
  /** Headers of ours that the client sent: an attempt to tag itself. */
  readonly forged: readonly string[]
  readonly snapshot: number
}
