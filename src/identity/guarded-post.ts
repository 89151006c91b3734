import { askGuarded, FetchFault, type GuardedPlace } from './guarded-connection.ts'

/** What is told to a server that is trusted for nothing. */
export interface GuardedMessage extends GuardedPlace {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Resolves when the server has taken it (2xx); nothing of what it says is read. Throws a FetchFault. */
export function guardedPost({ headers, body, ...place }: GuardedMessage, stop: AbortSignal): Promise<void> {
  return askGuarded(place, { method: 'POST', headers, body }, stop, async ({ status }) => {
    if (status < 200 || status > 299) throw new FetchFault('status', `it answers ${status}`, status)
  })
}
