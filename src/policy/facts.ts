import type { Verdict } from '../classify/verdict/verdict.ts'

/** What a rule can ask of a request: all of it is there before the first rule is tried. */
export interface Facts {
  readonly method: string
  /** Host or :authority as sent, with its port; `null` without one. */
  readonly host: string | null
  /** The target in origin-form, as sent; a query may follow. */
  readonly path: string
  /** The client's address, as text. */
  readonly address: string
  /** The client's headers, a flat list, each character a byte. */
  readonly rawHeaders: readonly string[]
  readonly print: PrintFacts
  readonly verdict: Verdict
  /** Headers of ours that the client sent. */
  readonly forged: readonly string[]
}

/** The part of a Print that rules know. */
export interface PrintFacts {
  readonly connection: {
    readonly ja4: string | null
    readonly stable: string | null
    readonly http2: string | null
    readonly noHello: 'not-tls' | 'malformed' | null
  }
  readonly ja4h: string | null
}
