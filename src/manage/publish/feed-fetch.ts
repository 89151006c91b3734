import { readFile } from 'node:fs/promises'
import { FetchFault, type GuardedAnswer, guardedGet } from '../../identity/fetch/guarded-get.ts'
import { FeedFault } from '../../plane/feed.ts'
import type { Secret } from '../../shared/secret.ts'

/** The location of a feed. Its server is not trusted: only the signature counts. */
export interface FeedPlace {
  /** https, without user and query. */
  readonly url: string
  /** Sent as a bearer token. */
  readonly token: Secret<string> | null
  /** PEM certificates that are trusted instead of the system's CAs. */
  readonly caFile: string | null
  readonly allowPrivate: boolean
  /** For the whole exchange, from the DNS lookup to the last byte. */
  readonly timeoutMs: number
  readonly bytesMax: number
}

/** `null`: unchanged since `etag`. */
type Fetched = { readonly body: Buffer; readonly etag: string | null } | null

/** Throws a FeedFault. A redirect is one as well: the setting has to name the final URL. */
export async function fetchFeed(place: FeedPlace, etag: string | null, stop: AbortSignal): Promise<Fetched> {
  const { url, allowPrivate, timeoutMs, bytesMax } = place
  const ca = await caIn(place.caFile)
  const asked = { url, headers: headers(place, etag), ca, allowPrivate, timeoutMs, bytesMax }
  const answer = await guardedGet(asked, stop).catch((error: unknown) => {
    throw error instanceof FetchFault ? faultOf(error, place) : error
  })
  return answer.status === 304 ? null : { body: answer.body, etag: etagIn(answer) }
}

function headers({ token }: FeedPlace, etag: string | null): Record<string, string> {
  return {
    accept: 'application/json',
    ...(token !== null && { authorization: `Bearer ${token.reveal()}` }),
    ...(etag !== null && { 'if-none-match': etag }),
  }
}

function etagIn({ headers: { etag } }: GuardedAnswer): string | null {
  return typeof etag === 'string' && etag.length <= ETAG_LENGTH_MAX && ETAG.test(etag) ? etag : null
}

/** Adds the setting that solves the problem. */
function faultOf(fault: FetchFault, { bytesMax }: FeedPlace): FeedFault {
  const { reason, message } = fault
  const said = (text: string) => new FeedFault(reason, text, { cause: fault.cause })
  if (reason === 'address') return said(`${message}; allow_private: true allows it`)
  if (reason === 'redirect') return said(`${message}; set its final url`)
  return said(reason === 'too-large' ? `it is longer than bytes_max, ${bytesMax} bytes` : message)
}

async function caIn(file: string | null): Promise<string | null> {
  if (file === null) return null
  const text = await readFile(file, 'latin1').catch((error: NodeJS.ErrnoException) => {
    throw new FeedFault('configuration', `${file} cannot be read (${error.code})`, { cause: error })
  })
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text
  throw new FeedFault('configuration', `${file} holds no certificate in PEM`)
}

const ETAG_LENGTH_MAX = 512
const ETAG = /^[!-~]+$/
