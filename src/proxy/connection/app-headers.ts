import type { Verdict } from '../../classify/verdict/verdict.ts'
import type { ConnectionPrint } from '../../fingerprint/print.ts'

/** All headers of a request for an app but for framing. */
export interface AppHeaders {
  /** Of this request alone, the client's first: name, value, … */
  readonly own: readonly string[]
  readonly introduction: Introduction | null
}

/** What an app is told of who asks. It is the same for most requests of a connection, and is written out once for them. */
export interface Introduction {
  readonly authority: string | null
  readonly print: ConnectionPrint
  readonly ja4h: string | null
  readonly verdict: Verdict
  /** `null`: the app is told no more than where the request comes from. */
  readonly action: string | null
  readonly headers: readonly string[]
  /** The same as lines of HTTP/1; `null` for what cannot be written without saying something else. */
  readonly lines: string | null
}

/** As one list: name, value, … */
export function listed({ own, introduction }: AppHeaders): string[] {
  return introduction === null ? [...own] : [...own, ...introduction.headers]
}
