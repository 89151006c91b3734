import type { IncomingHttpHeaders } from 'node:http'
import type { LookupFunction } from 'node:net'
import type { Dispatcher } from 'undici'
import { Fault } from '../fault.ts'
import { ADDRESS_REFUSED, publicLookup, publicOnly } from './public-address.ts'

/** A server that is trusted for nothing: somebody else has said where it is. */
export interface GuardedPlace {
  readonly url: string
  /** Trusted instead of the system's CAs; PEM. */
  readonly ca: string | null
  /** Whether it may have an address that is not on the public internet. */
  readonly allowPrivate: boolean
  /** For everything, from the name's lookup to the last byte. */
  readonly timeoutMs: number
  /** Instead of the system's, which is told apart by tests. */
  readonly lookup?: LookupFunction
}

export interface GuardedAsked {
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
}

export type FetchReason = 'address' | 'redirect' | 'status' | 'too-large' | 'timeout' | 'network'

/** Why there is no answer, in our own words: what others say may have anything in it. */
export class FetchFault extends Fault {
  readonly reason: FetchReason
  /** `null`: it did not come to one. */
  readonly status: number | null

  constructor(reason: FetchReason, message: string, status: number | null = null, options?: ErrorOptions) {
    super(`FETCH_${reason.replaceAll('-', '_').toUpperCase()}`, message, options)
    this.name = 'FetchFault'
    this.reason = reason
    this.status = status
  }
}

/** What an answer is, before its body is read. */
export interface GuardedHead {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: AsyncIterable<Buffer>
}

/**
 * Asks, on a connection of its own, and gives what `read` makes of the answer; what that leaves of the body never comes.
 * Throws a FetchFault. No redirect is followed: it would lead past whoever has looked at the URL.
 */
export async function askGuarded<Answer>(
  place: GuardedPlace,
  asked: GuardedAsked,
  stop: AbortSignal,
  read: (head: GuardedHead) => Promise<Answer>,
): Promise<Answer> {
  const { Agent, buildConnector, request } = await import('undici')
  const { url, ca, allowPrivate, timeoutMs, lookup } = place
  const connector = buildConnector({
    timeout: timeoutMs,
    allowH2: false,
    rejectUnauthorized: true, // whatever NODE_TLS_REJECT_UNAUTHORIZED says
    ...(ca !== null && { ca }),
    ...(allowPrivate ? lookup !== undefined && { lookup } : { lookup: publicLookup(lookup) }),
  })
  const agent = new Agent({ connect: allowPrivate ? connector : publicOnly(connector) })
  const signal = AbortSignal.any([stop, AbortSignal.timeout(timeoutMs)])
  const { method, body } = asked
  const headers = { 'accept-encoding': 'identity', 'user-agent': 'gatehouse', ...asked.headers }
  try {
    const answer = await request(url, { dispatcher: agent, method, headers, body, signal })
    return await read(headOf(answer))
  } catch (error) {
    throw faultOf(error, place)
  } finally {
    await agent.destroy()
  }
}

function headOf({ statusCode: status, headers, body }: Dispatcher.ResponseData): GuardedHead {
  body.on('error', () => undefined) // of what is not read any more
  if (status >= 300 && status < 400 && status !== 304)
    throw new FetchFault('redirect', `it answers ${status}, and no redirect is followed`, status)
  return { status, headers, body: body as AsyncIterable<Buffer> }
}

function faultOf(error: unknown, { timeoutMs }: GuardedPlace): FetchFault {
  if (error instanceof FetchFault) return error
  const { name, code, message } = error as NodeJS.ErrnoException
  const options = { cause: error }
  if (code === ADDRESS_REFUSED) return new FetchFault('address', message, null, options)
  if (name === 'TimeoutError' || code === 'UND_ERR_CONNECT_TIMEOUT')
    return new FetchFault('timeout', `it has not come within ${timeoutMs} ms`, null, options)
  return new FetchFault('network', `it cannot be fetched (${code ?? name})`, null, options)
}
