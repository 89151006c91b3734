import type Koa from 'koa'

/** An error response of an OAuth endpoint (RFC 6749 §5.2). */
export class OAuthError extends Error {
  readonly status: number
  readonly code: string
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: number,
    code: string,
    description: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(description)
    this.name = 'OAuthError'
    this.status = status
    this.code = code
    this.headers = headers
  }
}

export function sayError(
  ctx: Koa.ParameterizedContext,
  { status, code, message, headers }: OAuthError,
): void {
  ctx.set({ ...headers })
  ctx.body = { error: code, error_description: message }
  ctx.type = 'application/json'
  ctx.status = status
}

/** The response while the database is unreachable. */
export function unavailable(): OAuthError {
  return new OAuthError(503, 'temporarily_unavailable', 'temporarily unavailable: try again later', {
    'Retry-After': '5',
  })
}
