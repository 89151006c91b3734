import type { RequestHead } from '../../wire/request-head.ts'

/** The head of a request that a client sent to the proxy. */
export interface ReceivedHead extends RequestHead {
  /** A header name has a character other than letters, digits and hyphens, so each name must be checked. */
  readonly hasOddNames: boolean
}
