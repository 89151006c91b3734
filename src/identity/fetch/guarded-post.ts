import { FetchFault, type GuardedRequest, guardedExchange, isRedirect, redirected } from './guarded-get.ts'

/** A message to an untrusted server. */
export interface GuardedMessage extends Omit<GuardedRequest, 'bytesMax'> {
  readonly body: string
}

/** Resolves when the server accepts the message (2xx). The response body is not read. Throws a FetchFault. */
export function guardedPost(message: GuardedMessage, stop: AbortSignal): Promise<void> {
  const asked = { ...message, method: 'POST' as const, bytesMax: 0 }
  return guardedExchange(asked, stop, async ({ statusCode: status }) => {
    if (isRedirect(status)) throw redirected(status)
    if (status < 200 || status > 299) throw new FetchFault('status', `it answers ${status}`, status)
  })
}
