import { Readable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import type { RequestContext } from '../http/router.ts'
import { addHeaders } from '../http/front/head.ts'

/** Answers with these Server-Sent Events until they end. */
export function sayEvents(ctx: RequestContext, events: AsyncGenerator<string, void, undefined>): void {
  // The server closes a connection that is idle for this long.
  const silenceMs = ctx.req.socket.timeout || Number.POSITIVE_INFINITY
  sayEventStream(ctx, eventStream(events, Math.min(KEEP_ALIVE_MS, silenceMs / 3)))
}

/** Answers with a stream of Server-Sent Events. Headers ask proxies not to cache, compress or buffer it. */
export function sayEventStream(ctx: RequestContext, body: Readable): void {
  addHeaders(ctx.state.head, HEADERS)
  ctx.status = 200
  ctx.body = body
  ctx.set('Content-Type', 'text/event-stream')
}

/**
 * Server-Sent Events as a body, with backpressure. If the client disconnects, the stream waits for the
 * pending event, so the caller has to end `events`.
 */
export function eventStream(events: AsyncGenerator<string, void, undefined>, keepAliveMs: number): Readable {
  return Readable.from(withKeepAlive(events, keepAliveMs), { objectMode: false })
}

/** Sends a comment when no event comes for a while, because proxies close idle connections. */
async function* withKeepAlive(
  events: AsyncGenerator<string, void, undefined>,
  everyMs: number,
): AsyncGenerator<string, void, undefined> {
  try {
    let next = events.next()
    for (;;) {
      const came = await orSilence(next, everyMs)
      if (came === SILENCE) yield ': keep-alive\n\n'
      else if (came.done === true) return
      else {
        yield came.value
        next = events.next()
      }
    }
  } finally {
    await events.return()
  }
}

async function orSilence<Result>(next: Promise<Result>, afterMs: number): Promise<Result | typeof SILENCE> {
  const inTime = new AbortController()
  const options = { ref: false, signal: inTime.signal }
  const silence = wait<typeof SILENCE>(afterMs, SILENCE, options).catch((): typeof SILENCE => SILENCE)
  try {
    return await Promise.race([next, silence])
  } finally {
    inTime.abort()
  }
}

const SILENCE: unique symbol = Symbol('silence')
const KEEP_ALIVE_MS = 15_000
/** Asks proxies not to buffer the events, which would delay them. */
const HEADERS = { 'Cache-Control': 'no-cache, no-transform', 'X-Accel-Buffering': 'no' }
