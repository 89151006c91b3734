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
    detail: textOf(detail) ?? textOf(title) ?? `the server answered ${status} without a reason`,
    errors: Array.isArray(errors) ? errors.filter(isError) : [],
    requestId: textOf(request_id),
  })
}

/** There was no response: the management plane or the network is down. */
export function unreachable(): ApiProblem {
  return new ApiProblem({ status: 0, code: 'unreachable', detail: 'cannot reach the management plane' })
}

/** Advice for the reader. */
export function adviceFor({ status, code }: Pick<ApiProblem, 'status' | 'code'>): string {
  if (status === 0)
    return 'The dashboard tries again in a few seconds. Proxies keep working. Check the manager process, its log and the network.'
  if (status === 401) return 'Sign in again: the key was revoked or has expired.'
  if (status === 403) return 'Sign in with a key that has the required scope, or ask an administrator.'
  if (status === 404) return 'It may have been deleted, or the address may be wrong.'
  if (status === 409 || status === 412)
    return 'Another change was saved first. Reload it and check the current state.'
  if (status === 429) return 'Wait and try again, or use a key with a larger plan.'
  if (status === 503 || code === 'unavailable')
    return 'The database is unavailable. No data is lost, and proxies keep working. Run `gatehouse doctor` to find the cause.'
  if (status >= 500)
    return 'This is a bug in Gatehouse. Search the log of the management plane for the request ID.'
  return 'Fix the errors below.'
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

function isError(value: unknown): value is ApiProblem['errors'][number] {
  return typeof value === 'object' && value !== null && 'pointer' in value && 'detail' in value
}
