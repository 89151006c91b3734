import { FetchFault, type GuardedRequest, guardedExchange, isRedirect, redirected } from './guarded-get.ts'

/** What is told to a server that is trusted for nothing. */
export interface GuardedMessage extends Omit<GuardedRequest, 'bytesMax'> {
  readonly body: string
}

/** Resolves when the server has taken it (2xx); nothing of what it says is read. Throws a FetchFault. */
export function guardedPost(message: GuardedMessage, stop: AbortSignal): Promise<void> {
  const asked = { ...message, method: 'POST' as const, bytesMax: 0 }
  return guardedExchange(asked, stop, async ({ statusCode: status }) => {
    if (isRedirect(status)) throw redirected(status)
    if (status < 200 || status > 299) throw new FetchFault('status', `it answers ${status}`, status)
  })
}
