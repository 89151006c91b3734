import type { IncomingHttpHeaders } from 'node:http'
import type { LookupFunction } from 'node:net'
import type { Agent, Dispatcher } from 'undici'
import { Fault } from '../../shared/fault.ts'
import { ADDRESS_REFUSED, publicLookup, publicOnly } from './public-address.ts'

/** A request to an untrusted server. */
export interface GuardedRequest extends ConnectionGuards {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly bytesMax: number
}

/** Guards that apply to each connection. */
export interface ConnectionGuards {
  /** CA certificates (PEM) that replace the system's. */
  readonly ca: string | null
  /** Allows addresses that are not on the public internet. */
  readonly allowPrivate: boolean
  /** For everything, from the name lookup to the last byte. */
  readonly timeoutMs: number
  /** Replaces the system's lookup; tests set it. */
  readonly lookup?: LookupFunction
}

export interface GuardedAnswer {
  /** `304` only if the request was conditional. */
  readonly status: 200 | 304
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export type FetchReason = 'address' | 'redirect' | 'status' | 'too-large' | 'timeout' | 'network'

/** Why a fetch failed, in our own words: text from the server is untrusted. */
export class FetchFault extends Fault {
  readonly reason: FetchReason
  /** `null`: there was no response. */
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

/** The same with another method, for any response. */
export interface GuardedExchange extends GuardedRequest {
  readonly method: 'GET' | 'POST'
  readonly body: string | null
}

/** Throws a FetchFault. Follows no redirect: a redirect could bypass the check of the URL. */
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

/**
 * Loads undici on first use. Loading blocks the process and delays its requests, so a process can call this
 * earlier.
 */
export function fetchCode(): Promise<typeof import('undici')> {
  return import('undici')
}

/** An agent that reuses connections, each guarded when it is opened. The caller must destroy it. */
export async function guardedAgent(guards: ConnectionGuards): Promise<Agent> {
  const { Agent, buildConnector } = await fetchCode()
  const { ca, allowPrivate, timeoutMs, lookup } = guards
  const connector = buildConnector({
    timeout: timeoutMs,
    allowH2: false,
    rejectUnauthorized: true, // even if NODE_TLS_REJECT_UNAUTHORIZED is set
    ...(ca !== null && { ca }),
    ...(allowPrivate ? lookup !== undefined && { lookup } : { lookup: publicLookup(lookup) }),
  })
  return new Agent({ connect: allowPrivate ? connector : publicOnly(connector) })
}

/** The same over reused connections. */
export async function exchangeBy<Answer>(
  agent: Agent,
  asked: Pick<GuardedExchange, 'url' | 'method' | 'headers' | 'body' | 'timeoutMs'>,
  stop: AbortSignal,
  read: (response: Dispatcher.ResponseData) => Promise<Answer>,
): Promise<Answer> {
  const { request } = await fetchCode()
  const { url, method, body, timeoutMs } = asked
  // Not AbortSignal.timeout: under load it would keep finished requests in memory until their timeout.
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new DOMException('late', 'TimeoutError')), timeoutMs).unref()
  const signal = AbortSignal.any([stop, late.signal])
  const headers = { 'accept-encoding': 'identity', 'user-agent': 'gatehouse', ...asked.headers }
  try {
    const response = await request(url, { method, body, dispatcher: agent, headers, signal })
    response.body.on('error', () => undefined) // errors after reading stopped
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

/** Throws a FetchFault if the body is too long. */
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

/** A 304 makes sense only for a request with one of these headers. */
const CONDITIONS = ['if-none-match', 'if-modified-since']
