import { bytesIn, guardedExchange, type GuardedRequest, isRedirect, redirected } from './guarded-get.ts'

/** The settings that stay the same for all requests. */
export type FetchGuards = Omit<GuardedRequest, 'url' | 'headers'>

export type GuardedFetch = (url: string, init: FetchInit) => Promise<Response>

/** The part of `fetch`'s options that OAuth libraries use. */
export interface FetchInit {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
}

/**
 * A `fetch` for libraries, with the guards of `guardedGet`. The response body is read completely. Rejects
 * with a FetchFault.
 */
export function guardedFetch(guards: FetchGuards, stop: AbortSignal): GuardedFetch {
  return (url, { method, headers, body, signal }) => {
    const text = textOf(body)
    const asked = { ...guards, url, headers, method: method === 'POST' ? 'POST' : 'GET', body: text } as const
    const ends = signal === undefined ? stop : AbortSignal.any([stop, signal])
    return guardedExchange(asked, ends, async (response) => {
      const { statusCode: status } = response
      if (isRedirect(status)) throw redirected(status)
      const bytes = await bytesIn(response.body, guards.bytesMax, status)
      return new Response(BODYLESS.has(status) ? null : new Uint8Array(bytes), {
        status,
        headers: headersOf(response.headers),
      })
    })
  }
}

/** OAuth libraries send forms or no body. */
function textOf(body: unknown): string | null {
  if (body === undefined || body === null) return null
  if (typeof body === 'string' || body instanceof URLSearchParams) return String(body)
  throw new TypeError('only text is sent')
}

function headersOf(given: Readonly<Record<string, string | string[] | undefined>>): Headers {
  const headers = new Headers()
  for (const [name, values] of Object.entries(given))
    for (const value of [values ?? []].flat()) headers.append(name, value)
  return headers
}

/** Statuses without a body: `Response` rejects a body for them. */
const BODYLESS: ReadonlySet<number> = new Set([204, 205, 304])
