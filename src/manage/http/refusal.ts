/** An error answer, thrown where the error is found (RFC 9457, see problem.ts). */
export class Refusal extends Error {
  readonly status: number
  readonly code: ProblemCode
  readonly headers: Readonly<Record<string, string>>
  readonly errors: readonly FieldError[]

  constructor(
    code: ProblemCode,
    detail: string,
    {
      headers = {},
      errors = [],
    }: { headers?: Readonly<Record<string, string>>; errors?: readonly FieldError[] } = {},
  ) {
    super(detail)
    this.name = 'Refusal'
    this.code = code
    this.status = PROBLEMS[code].status
    this.headers = headers
    this.errors = errors
  }
}

/** For a body or a query that is well formed but has invalid content. */
export function invalid(errors: readonly [FieldError, ...FieldError[]]): Refusal {
  const [{ pointer, detail }] = errors
  const place = pointer === '' ? 'the body' : pointer.slice(1)
  return new Refusal('invalid_request', `${place} ${detail}`, { errors })
}

/** One error in a body or a query. */
export interface FieldError {
  /** A JSON Pointer (RFC 6901) into the body. For a parameter: a slash and its name. */
  readonly pointer: string
  readonly detail: string
}

/** Every problem code. Programs depend on the codes, so they never change. */
export const PROBLEMS = {
  invalid_request: { status: 400, title: 'The request is invalid' },
  missing_token: { status: 401, title: 'A token is required' },
  invalid_token: { status: 401, title: 'The token is invalid' },
  expired_token: { status: 401, title: 'The token has expired' },
  use_dpop_nonce: { status: 401, title: 'The DPoP proof needs a nonce' },
  insufficient_scope: { status: 403, title: 'The token does not allow this' },
  needs_all_apps: { status: 403, title: 'Access to all apps is required' },
  origin_not_allowed: { status: 403, title: 'Requests from this origin are not allowed' },
  not_found: { status: 404, title: 'Not found' },
  method_not_allowed: { status: 405, title: 'The method is not allowed' },
  not_acceptable: { status: 406, title: 'No representation matches the Accept header' },
  request_timeout: { status: 408, title: 'The request took too long' },
  conflict: { status: 409, title: 'The request conflicts with the current state' },
  idempotency_conflict: { status: 409, title: 'The idempotency key was used for another request' },
  idempotency_in_progress: {
    status: 409,
    title: 'The first request with this idempotency key is still running',
  },
  precondition_failed: { status: 412, title: 'The resource has changed' },
  too_large: { status: 413, title: 'The body is too large' },
  uri_too_long: { status: 414, title: 'The URL is too long' },
  unsupported_media_type: { status: 415, title: 'The format of the body is not supported' },
  expectation_failed: { status: 417, title: 'The Expect header is not supported' },
  precondition_required: { status: 428, title: 'The request must be conditional' },
  rate_limited: { status: 429, title: 'Too many requests' },
  header_too_large: { status: 431, title: 'The header is too large' },
  internal: { status: 500, title: 'Internal error in Gatehouse' },
  unavailable: { status: 503, title: 'Temporarily unavailable' },
} as const satisfies Record<string, { status: number; title: string }>

export type ProblemCode = keyof typeof PROBLEMS
