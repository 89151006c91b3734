import type { StreamEvent } from '../../../wire/event-stream.ts'
import type { Request } from '../../api/operations.ts'

/** The newest requests, newest first, and the number of skipped ones. */
export interface Fed {
  readonly requests: readonly Request[]
  readonly skipped: number
}

export const NOTHING_FED: Fed = { requests: [], skipped: 0 }

/** Adds events of the stream. Of a burst, only the requests that are shown are parsed. */
export function fedWith(fed: Fed, events: readonly StreamEvent[]): Fed {
  const skipped = events
    .filter(({ event }) => event === 'skipped')
    .map(({ data }) => (JSON.parse(data) as { requests: number }).requests)
  const fresh = events.filter(({ event }) => event === 'request')
  // The list that was loaded after the stream began may have some of them.
  const known = new Set(fed.requests.map(({ id }) => id))
  const shown = fresh
    .slice(-SHOWN_MAX)
    .map(({ data }) => JSON.parse(data) as Request)
    .filter(({ id }) => !known.has(id))
  return {
    requests: [...shown.reverse(), ...fed.requests].slice(0, SHOWN_MAX),
    skipped: skipped.reduce((sum, each) => sum + each, fed.skipped),
  }
}

/** Adds requests from before the stream was connected. */
export function caughtUp(fed: Fed, older: readonly Request[]): Fed {
  const known = new Set(fed.requests.map(({ id }) => id))
  const all = [...fed.requests, ...older.filter(({ id }) => !known.has(id))]
  const newestFirst = all.sort((one, other) =>
    one.seen_at < other.seen_at ? 1 : one.seen_at > other.seen_at ? -1 : 0,
  )
  return { ...fed, requests: newestFirst.slice(0, SHOWN_MAX) }
}

/** More than fits on a screen; older ones are in the list of requests. */
const SHOWN_MAX = 50
