/** A failed API call. */
export class ApiProblem extends Error {
  /** 0: no response. */
  readonly status: number
  readonly code: string
  /** Problems in parts of the request. */
  readonly errors: readonly { readonly pointer: string; readonly detail: string }[]
  readonly requestId: string | null

  constructor({ status, code, detail, errors = [], requestId = null }: Said) {
    super(detail)
    this.name = 'ApiProblem'
    this.status = status
    this.code = code
    this.errors = errors
    this.requestId = requestId
  }
}

interface Said {
  readonly status: number
  readonly code: string
  readonly detail: string
  readonly errors?: ApiProblem['errors']
  readonly requestId?: string | null
}

/** Also reads responses that are not from the API: a proxy in between may have sent them. */
export function problemOf(status: number, body: unknown): ApiProblem {
  const { code, detail, title, errors, request_id } = (
    typeof body === 'object' && body !== null ? body : {}
  ) as Record<string, unknown>
  return new ApiProblem({
    status,
    code: textOf(code) ?? 'none',
    detail: textOf(detail) ?? textOf(title) ?? `the answer was ${status}, without a reason`,
    errors: Array.isArray(errors) ? errors.filter(isError) : [],
    requestId: textOf(request_id),
  })
}

/** There was no response: the management plane or the network is down. */
export function unreachable(): ApiProblem {
  return new ApiProblem({ status: 0, code: 'unreachable', detail: 'the management plane does not answer' })
}

/** Advice for the reader. */
export function adviceFor({ status, code }: Pick<ApiProblem, 'status' | 'code'>): string {
  if (status === 0)
    return 'It is asked again in a few seconds. Proxies go on without it: look at its process, its log and the network.'
  if (status === 401) return 'Sign in again: the key was revoked, or its time is over.'
  if (status === 403) return 'Sign in with a key that has the scope, or ask who administers this gateway.'
  if (status === 404) return 'It may have been removed in the meantime, or the address may be mistyped.'
  if (status === 409 || status === 412)
    return 'Somebody was faster. Load it again, and decide on what it is now.'
  if (status === 429) return 'Wait a little, or use a key with a larger plan.'
  if (status === 503 || code === 'unavailable')
    return 'The database cannot be used now; nothing is lost, and proxies go on. `gatehouse doctor` says what is wrong.'
  if (status >= 500)
    return 'This is a bug. The log of the management plane has it under the id of the request.'
  return 'Correct what is named, and send it again.'
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

function isError(value: unknown): value is ApiProblem['errors'][number] {
  return typeof value === 'object' && value !== null && 'pointer' in value && 'detail' in value
}
