import type { Request } from '../../api/operations.ts'

/** The newest requests, the newest first, and how many more there were. */
export interface Fed {
  readonly requests: readonly Request[]
  readonly skipped: number
}

export const NOTHING_FED: Fed = { requests: [], skipped: 0 }

/** With what one event of the stream says. */
export function fedWith(fed: Fed, event: string, data: string): Fed {
  if (event === 'skipped') {
    const { requests } = JSON.parse(data) as { requests: number }
    return { ...fed, skipped: fed.skipped + requests }
  }
  if (event !== 'request') return fed
  return { ...fed, requests: [JSON.parse(data) as Request, ...fed.requests].slice(0, SHOWN_MAX) }
}

/** With those that came before it was listened to, or while it was not. */
export function caughtUp(fed: Fed, older: readonly Request[]): Fed {
  const known = new Set(fed.requests.map(({ id }) => id))
  const all = [...fed.requests, ...older.filter(({ id }) => !known.has(id))]
  const newestFirst = all.sort((one, other) =>
    one.seen_at < other.seen_at ? 1 : one.seen_at > other.seen_at ? -1 : 0,
  )
  return { ...fed, requests: newestFirst.slice(0, SHOWN_MAX) }
}

/** More than fit a screen; what is older is in the list of requests. */
const SHOWN_MAX = 50
