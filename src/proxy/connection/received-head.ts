import type { RequestHead } from '../../wire/request-head.ts'

/** The head of a request that a client sent to the proxy. */
export interface ReceivedHead extends RequestHead {
  /** The name of a header has a character other than letters, digits and hyphens: none is passed on without a look. */
  readonly hasOddNames: boolean
}
