import { readFile } from 'node:fs/promises'
import type { Dispatcher } from 'undici'
import { FeedFault } from '../plane/feed.ts'
import type { Secret } from '../secret.ts'
import { ADDRESS_REFUSED, publicLookup, publicOnly } from './public-address.ts'

/** Where a feed is, and how far its server is trusted: for nothing but to give bytes. */
export interface FeedPlace {
  /** https, without user and query. */
  readonly url: string
  /** Sent as a bearer token. */
  readonly token: Secret<string> | null
  /** Trusted instead of the system's CAs; PEM. */
  readonly caFile: string | null
  readonly allowPrivate: boolean
  /** For everything, from the name's lookup to the last byte. */
  readonly timeoutMs: number
  readonly bytesMax: number
}

/** `null`: it is what `etag` names. */
export type Fetched = { readonly body: Buffer; readonly etag: string | null } | null

/** Throws a FeedFault. No redirect is followed: who may move a feed may as well publish it. */
export async function fetchFeed(place: FeedPlace, etag: string | null, stop: AbortSignal): Promise<Fetched> {
  const { Agent, buildConnector, request } = await import('undici')
  const ca = await caIn(place.caFile)
  const { allowPrivate, timeoutMs } = place
  const connector = buildConnector({
    timeout: timeoutMs,
    allowH2: false,
    rejectUnauthorized: true, // whatever NODE_TLS_REJECT_UNAUTHORIZED says
    ...(ca !== null && { ca }),
    ...(!allowPrivate && { lookup: publicLookup }),
  })
  const agent = new Agent({ connect: allowPrivate ? connector : publicOnly(connector) })
  const signal = AbortSignal.any([stop, AbortSignal.timeout(timeoutMs)])
  try {
    const response = await request(place.url, { dispatcher: agent, headers: headers(place, etag), signal })
    return await answer(response, place, etag)
  } catch (error) {
    throw faultOf(error, place)
  } finally {
    await agent.destroy()
  }
}

function headers({ token }: FeedPlace, etag: string | null): Record<string, string> {
  return {
    accept: 'application/json',
    'accept-encoding': 'identity',
    'user-agent': 'gatehouse',
    ...(token !== null && { authorization: `Bearer ${token.reveal()}` }),
    ...(etag !== null && { 'if-none-match': etag }),
  }
}

async function answer(
  { statusCode, headers, body }: Dispatcher.ResponseData,
  { bytesMax }: FeedPlace,
  etagSent: string | null,
): Promise<Fetched> {
  body.on('error', () => undefined) // of what is not read any more
  if (statusCode === 304 && etagSent !== null) return null
  if (statusCode >= 300 && statusCode < 400 && statusCode !== 304)
    throw new FeedFault(
      'redirect',
      `it answers ${statusCode}, and no redirect is followed; set its final url`,
    )
  if (statusCode !== 200) throw new FeedFault('status', `it answers ${statusCode}`)
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of body as AsyncIterable<Buffer>) {
    length += piece.length
    if (length > bytesMax) throw new FeedFault('too-large', `it is longer than bytes_max, ${bytesMax} bytes`)
    pieces.push(piece)
  }
  const { etag } = headers
  const isUsable = typeof etag === 'string' && etag.length <= ETAG_LENGTH_MAX && ETAG.test(etag)
  return { body: Buffer.concat(pieces), etag: isUsable ? etag : null }
}

/** In our own words: what others say may have anything in it. */
function faultOf(error: unknown, { timeoutMs }: FeedPlace): FeedFault {
  if (error instanceof FeedFault) return error
  const { name, code, message } = error as NodeJS.ErrnoException
  if (code === ADDRESS_REFUSED) return new FeedFault('address', message, { cause: error })
  if (name === 'TimeoutError' || code === 'UND_ERR_CONNECT_TIMEOUT')
    return new FeedFault('timeout', `it has not come within ${timeoutMs} ms`, { cause: error })
  return new FeedFault('network', `it cannot be fetched (${code ?? name})`, { cause: error })
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
