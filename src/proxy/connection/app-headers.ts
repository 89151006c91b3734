import type { Verdict } from '../../classify/verdict/verdict.ts'
import type { ConnectionPrint } from '../../fingerprint/print.ts'

/** All headers of a request to an app, except framing. */
export interface AppHeaders {
  /** Headers of this request only, the client's first: name, value, … */
  readonly own: readonly string[]
  readonly introduction: Introduction | null
}

/**
 * The headers that tell the app about the client. They are the same for most requests of a connection, so
 * they are built once for them.
 */
export interface Introduction {
  readonly authority: string | null
  readonly print: ConnectionPrint
  readonly ja4h: string | null
  readonly verdict: Verdict
  /** `null`: the app gets only the headers on where the request comes from. */
  readonly action: string | null
  readonly headers: readonly string[]
  /** The same as HTTP/1 lines. `null` if a value would not be a single valid line. */
  readonly lines: string | null
}

/** A flat list: name, value, … */
export function listed({ own, introduction }: AppHeaders): string[] {
  return introduction === null ? [...own] : [...own, ...introduction.headers]
}
