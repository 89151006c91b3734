import { Readable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import type { RequestContext } from '../http/router.ts'
import { addHeaders } from '../http/front/head.ts'

/** Answers with these Server-Sent Events for as long as there are some. */
export function sayEvents(ctx: RequestContext, events: AsyncGenerator<string, void, undefined>): void {
  // A connection on which nothing moves for so long is closed.
  const silenceMs = ctx.req.socket.timeout || Number.POSITIVE_INFINITY
  sayEventStream(ctx, eventStream(events, Math.min(KEEP_ALIVE_MS, silenceMs / 3)))
}

/** Answers with a body that is a stream of events by itself: nobody on the way keeps, compresses or collects it. */
export function sayEventStream(ctx: RequestContext, body: Readable): void {
  addHeaders(ctx.state.head, HEADERS)
  ctx.status = 200
  ctx.body = body
  ctx.set('Content-Type', 'text/event-stream')
}

/**
 * Server-Sent Events as a body: whoever does not read is not written to. It does not close before its events have ended:
 * whoever is left by the reader has to end them.
 */
export function eventStream(events: AsyncGenerator<string, void, undefined>, keepAliveMs: number): Readable {
  return Readable.from(withKeepAlive(events, keepAliveMs), { objectMode: false })
}

/** A comment in between, where nothing happens for long: proxies take silence for an end. */
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
/** What is kept on the way would come too late. */
const HEADERS = { 'Cache-Control': 'no-cache, no-transform', 'X-Accel-Buffering': 'no' }
