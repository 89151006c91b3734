import type { Request } from '../../api/operations.ts'

/** The newest requests, newest first, and the number of skipped ones. */
export interface Fed {
  readonly requests: readonly Request[]
  readonly skipped: number
}

export const NOTHING_FED: Fed = { requests: [], skipped: 0 }

/** Adds an event of the stream. */
export function fedWith(fed: Fed, event: string, data: string): Fed {
  if (event === 'skipped') {
    const { requests } = JSON.parse(data) as { requests: number }
    return { ...fed, skipped: fed.skipped + requests }
  }
  if (event !== 'request') return fed
  return { ...fed, requests: [JSON.parse(data) as Request, ...fed.requests].slice(0, SHOWN_MAX) }
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
