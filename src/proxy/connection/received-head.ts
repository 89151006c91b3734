import type { RequestHead } from '../../wire/request-head.ts'

/** The head of a request that a client sent to the proxy. */
export interface ReceivedHead extends RequestHead {
  /** A header name has a character other than letters, digits and hyphens, so each name must be checked. */
  readonly hasOddNames: boolean
  /** In HTTP/2, names of fields that must not enter a compression table on any hop (RFC 7541 §7.1.3). */
  readonly neverIndexed?: readonly string[] | null
}
