import type { HelloTraits } from './hello-traits.ts'
import type { Ja4 } from './ja4.ts'
import type { Ja4h } from './ja4plus/ja4h.ts'
import type { Ja4s } from './ja4plus/ja4s.ts'
import type { Ja4x } from './ja4plus/ja4x.ts'
import type { StableKey } from './stable-key.ts'

/** Why a connection has no fingerprint. `null` if it has one. */
export type NoHello =
  /** Plain HTTP, which has no hello. */
  | 'not-tls'
  /** The hello could not be parsed. The TLS handshake itself may still have succeeded. */
  | 'malformed'

/** The fingerprints of one connection. */
export interface ConnectionPrint {
  readonly ja4: Ja4 | null
  /** The JA4 without session resumption. `null` if the hello does not resume a session or this is unknown. */
  readonly unresumed: Ja4 | null
  readonly stable: StableKey | null
  /** Traits of the hello that neither `ja4` nor `stable` shows. */
  readonly traits: HelloTraits | null
  /** Of the proxy's own ServerHello. */
  readonly ja4s: Ja4s | null
  /** Of the client's certificate. */
  readonly ja4x: Ja4x | null
  /** The HTTP/2 fingerprint in Akamai's form. */
  readonly http2: string | null
  /** Of the HTTP/2 opening: see `pageWeight`. */
  readonly pageWeight: number | null
  readonly noHello: NoHello | null
  /** Whether the proxy computed `ja4` itself or took it from the trusted hop in front of it. */
  readonly ja4Source: 'own' | 'hop' | null
}

/** All the fingerprints of one request. */
export interface Print {
  readonly connection: ConnectionPrint
  /** `null` if JA4+ is turned off. */
  readonly ja4h: Ja4h | null
}
