import type { IncomingHttpHeaders } from 'node:http'
import type { LookupFunction } from 'node:net'
import type { Agent, Dispatcher } from 'undici'
import { Fault } from '../../shared/fault.ts'
import { ADDRESS_REFUSED, publicLookup, publicOnly } from './public-address.ts'

/** What is asked of a server that is trusted for nothing but to give bytes. */
export interface GuardedRequest extends ConnectionGuards {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly bytesMax: number
}

/** What is looked at whenever somebody is connected to. */
export interface ConnectionGuards {
  /** Trusted instead of the system's CAs; PEM. */
  readonly ca: string | null
  /** Whether it may have an address that is not on the public internet. */
  readonly allowPrivate: boolean
  /** For everything, from the name's lookup to the last byte. */
  readonly timeoutMs: number
  /** Instead of the system's, which is told apart by tests. */
  readonly lookup?: LookupFunction
}

export interface GuardedAnswer {
  /** `304` only where something was asked for that may not have changed. */
  readonly status: 200 | 304
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export type FetchReason = 'address' | 'redirect' | 'status' | 'too-large' | 'timeout' | 'network'

/** Why there is none, in our own words: what others say may have anything in it. */
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

/** Throws a FetchFault. */
export function guardedGet(asked: GuardedRequest, stop: AbortSignal): Promise<GuardedAnswer> {
  return guardedExchange({ ...asked, method: 'GET', body: null }, stop, (response) => answer(response, asked))
}

/** The same with another method, whatever is answered. */
export interface GuardedExchange extends GuardedRequest {
  readonly method: 'GET' | 'POST'
  readonly body: string | null
}

/** Throws a FetchFault. No redirect is followed: it would lead past whoever has looked at the URL. */
export async function guardedExchange<Answer>(
  asked: GuardedExchange,
  stop: AbortSignal,
  read: (response: Dispatcher.ResponseData) => Promise<Answer>,
): Promise<Answer> {
  const agent = await guardedAgent(asked)
  try {
    return await exchangeBy(agent, asked, stop, read)
  } finally {
    await agent.destroy()
  }
}

/** What fetches is loaded with the first question, which holds up whoever is served by this process; or before, by this. */
export function fetchCode(): Promise<typeof import('undici')> {
  return import('undici')
}

/** Keeps connections, each of which was guarded when it was made. Whoever has it destroys it. */
export async function guardedAgent(guards: ConnectionGuards): Promise<Agent> {
  const { Agent, buildConnector } = await fetchCode()
  const { ca, allowPrivate, timeoutMs, lookup } = guards
  const connector = buildConnector({
    timeout: timeoutMs,
    allowH2: false,
    rejectUnauthorized: true, // whatever NODE_TLS_REJECT_UNAUTHORIZED says
    ...(ca !== null && { ca }),
    ...(allowPrivate ? lookup !== undefined && { lookup } : { lookup: publicLookup(lookup) }),
  })
  return new Agent({ connect: allowPrivate ? connector : publicOnly(connector) })
}

/** The same by connections that are kept. */
export async function exchangeBy<Answer>(
  agent: Agent,
  asked: Pick<GuardedExchange, 'url' | 'method' | 'headers' | 'body' | 'timeoutMs'>,
  stop: AbortSignal,
  read: (response: Dispatcher.ResponseData) => Promise<Answer>,
): Promise<Answer> {
  const { request } = await fetchCode()
  const { url, method, body, timeoutMs } = asked
  // Where much is sent, what has ended must not be remembered until it would have been late.
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new DOMException('late', 'TimeoutError')), timeoutMs).unref()
  const signal = AbortSignal.any([stop, late.signal])
  const headers = { 'accept-encoding': 'identity', 'user-agent': 'gatehouse', ...asked.headers }
  try {
    const response = await request(url, { method, body, dispatcher: agent, headers, signal })
    response.body.on('error', () => undefined) // of what is not read any more
    return await read(response)
  } catch (error) {
    throw faultOf(error, timeoutMs)
  } finally {
    clearTimeout(timer)
  }
}

async function answer(
  { statusCode: status, headers, body }: Dispatcher.ResponseData,
  asked: GuardedRequest,
): Promise<GuardedAnswer> {
  if (status === 304 && CONDITIONS.some((name) => asked.headers[name] !== undefined))
    return { status, headers, body: Buffer.alloc(0) }
  if (isRedirect(status)) throw redirected(status)
  if (status !== 200) throw new FetchFault('status', `it answers ${status}`, status)
  return { status, headers, body: await bytesIn(body, asked.bytesMax, status) }
}

export function isRedirect(status: number): boolean {
  return status >= 300 && status < 400 && status !== 304
}

export function redirected(status: number): FetchFault {
  return new FetchFault('redirect', `it answers ${status}, and no redirect is followed`, status)
}

/** Throws a FetchFault where it is longer. */
export async function bytesIn(
  body: AsyncIterable<Buffer>,
  bytesMax: number,
  status: number,
): Promise<Buffer> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of body) {
    length += piece.length
    if (length > bytesMax) throw new FetchFault('too-large', `it is longer than ${bytesMax} bytes`, status)
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

function faultOf(error: unknown, timeoutMs: number): FetchFault {
  if (error instanceof FetchFault) return error
  const { name, code, message } = error as NodeJS.ErrnoException
  const options = { cause: error }
  if (code === ADDRESS_REFUSED) return new FetchFault('address', message, null, options)
  if (name === 'TimeoutError' || code === 'UND_ERR_CONNECT_TIMEOUT')
    return new FetchFault('timeout', `it has not come within ${timeoutMs} ms`, null, options)
  return new FetchFault('network', `it cannot be fetched (${code ?? name})`, null, options)
}

/** Without one of these, nobody can say that it is the same. */
const CONDITIONS = ['if-none-match', 'if-modified-since']
