import { EventStreamReader, type StreamEvent } from '../../wire/event-stream.ts'
import { addressOf } from './address.ts'
import { send } from './ask.ts'
import { OPERATIONS, type Operations } from './operations.ts'
import { ApiProblem } from './problem.ts'

/** Operations that can answer with a stream of events. */
export type StreamId = 'listEvents' | 'listRequests'

export interface StreamListener {
  /** Those of one read, so that a burst of them is drawn once. */
  events(events: readonly StreamEvent[]): void
  /** Whether the stream is connected; if not, why. */
  state(isOpen: boolean, problem: ApiProblem | null): void
}

/**
 * Listens until `signal` is aborted. After a stream ends or breaks, it resumes behind the last event. Uses
 * fetch, because EventSource cannot send an Authorization header. Disconnects while the page is hidden: a
 * browser has six connections to a server for all tabs.
 */
export async function listen<Id extends StreamId>(
  id: Id,
  query: Operations[Id]['query'],
  listener: StreamListener,
  signal: AbortSignal,
): Promise<void> {
  const address = addressOf(OPERATIONS[id][1], {}, query)
  let lastId = ''
  for (let failures = 0; !signal.aborted; ) {
    await visible(signal)
    const connection = new AbortController()
    const letGo = () => (signal.aborted || document.hidden) && connection.abort()
    document.addEventListener('visibilitychange', letGo)
    signal.addEventListener('abort', letGo)
    try {
      const headers = { Accept: 'text/event-stream', ...(lastId !== '' && { 'Last-Event-ID': lastId }) }
      const response = await send(address, { headers, signal: connection.signal })
      listener.state(true, null)
      failures = 0
      for await (const events of eventsIn(response)) {
        lastId = events.findLast(({ id }) => id !== '')?.id ?? lastId
        listener.events(events)
      }
    } catch (error) {
      if (connection.signal.aborted) continue
      const problem = error instanceof ApiProblem ? error : null
      listener.state(false, problem)
      // The stream does not exist or the user lacks permission: a retry would not help.
      if (problem !== null && problem.status >= 400 && problem.status < 500 && problem.status !== 429) return
      failures++
    } finally {
      document.removeEventListener('visibilitychange', letGo)
      signal.removeEventListener('abort', letGo)
    }
    await pause(Math.min(1_000 * 2 ** failures, PAUSE_MAX_MS), signal)
  }
}

/** Resolves when the page is visible, or `signal` is aborted. */
function visible(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden && !signal.aborted) return
      document.removeEventListener('visibilitychange', look)
      signal.removeEventListener('abort', look)
      resolve()
    }
    document.addEventListener('visibilitychange', look)
    signal.addEventListener('abort', look)
    look()
  })
}

async function* eventsIn(response: Response): AsyncGenerator<readonly StreamEvent[]> {
  const events = new EventStreamReader(EVENT_LENGTH_MAX)
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const read = events.read(value)
    if (read === null) return void (await reader.cancel())
    if (read.length > 0) yield read
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
    function end() {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
  })
}

const PAUSE_MAX_MS = 15_000
const EVENT_LENGTH_MAX = 1_048_576
