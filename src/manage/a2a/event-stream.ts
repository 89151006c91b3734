import { Readable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'

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
