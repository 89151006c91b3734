import type { IncomingHttpHeaders } from 'node:http'
import { askGuarded, FetchFault, type GuardedHead, type GuardedPlace } from './guarded-connection.ts'

/** What is asked of a server that is trusted for nothing but to give bytes. */
export interface GuardedRequest extends GuardedPlace {
  readonly headers: Readonly<Record<string, string>>
  readonly bytesMax: number
}

export interface GuardedAnswer {
  /** `304` only where something was asked for that may not have changed. */
  readonly status: 200 | 304
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** Throws a FetchFault. */
export function guardedGet(asked: GuardedRequest, stop: AbortSignal): Promise<GuardedAnswer> {
  const { headers } = asked
  return askGuarded(asked, { method: 'GET', headers, body: null }, stop, (head) => answer(head, asked))
}

async function answer({ status, headers, body }: GuardedHead, asked: GuardedRequest): Promise<GuardedAnswer> {
  if (status === 304 && asked.headers['if-none-match'] !== undefined)
    return { status, headers, body: Buffer.alloc(0) }
  if (status !== 200) throw new FetchFault('status', `it answers ${status}`, status)
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of body) {
    length += piece.length
    if (length > asked.bytesMax)
      throw new FetchFault('too-large', `it is longer than ${asked.bytesMax} bytes`, status)
    pieces.push(piece)
  }
  return { status, headers, body: Buffer.concat(pieces) }
}
