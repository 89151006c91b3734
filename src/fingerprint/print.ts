import type { HelloTraits } from './hello-traits.ts'
import type { Ja4 } from './ja4.ts'
import type { Ja4h } from './ja4plus/ja4h.ts'
import type { Ja4s } from './ja4plus/ja4s.ts'
import type { Ja4x } from './ja4plus/ja4x.ts'
import type { StableKey } from './stable-key.ts'

/** Why a connection has no fingerprint; `null` where it has one. */
export type NoHello =
  /** Plain HTTP: there is no hello. */
  | 'not-tls'
  /** The hello could not be read (TLS itself may still have coped). */
  | 'malformed'

/** What is known of a client once per connection. */
export interface ConnectionPrint {
  readonly ja4: Ja4 | null
  /** What `ja4` would be if the hello did not resume a session; `null`: it does not, or nobody can say. */
  readonly unresumed: Ja4 | null
  readonly stable: StableKey | null
  /** What of its hello neither of them shows. */
  readonly traits: HelloTraits | null
  /** Of what we answered. */
  readonly ja4s: Ja4s | null
  /** Of the client's certificate. */
  readonly ja4x: Ja4x | null
  /** The HTTP/2 opening in Akamai's form. */
  readonly http2: string | null
  readonly noHello: NoHello | null
  /** Who computed `ja4`: we did, or the trusted hop in front of us. */
  readonly ja4Source: 'own' | 'hop' | null
}

/** All the fingerprints of one request. */
export interface Print {
  readonly connection: ConnectionPrint
  /** `null` when JA4+ is turned off. */
  readonly ja4h: Ja4h | null
}
