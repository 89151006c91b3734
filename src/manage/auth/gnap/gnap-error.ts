import type { Refusal } from '../../http/refusal.ts'

/** An error response of GNAP (RFC 9635 §3.6). */
export class GnapError extends Error {
  readonly code: GnapCode
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(
    code: GnapCode,
    description: string,
    {
      status = STATUSES[code],
      headers = {},
    }: { status?: number; headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(description)
    this.name = 'GnapError'
    this.code = code
    this.status = status
    this.headers = headers
  }
}

type GnapCode = keyof typeof STATUSES

/** Converts a Refusal from shared code to a GNAP error. */
export function gnapErrorOf({ code, status, headers, message }: Refusal): GnapError {
  return code === 'invalid_token'
    ? new GnapError('invalid_client', message)
    : new GnapError(status < 500 ? 'invalid_request' : 'request_denied', message, { status, headers })
}

/** All GNAP error codes and our HTTP status for each; the specification defines none. */
const STATUSES = {
  invalid_request: 400,
  invalid_client: 401,
  invalid_interaction: 400,
  invalid_flag: 400,
  invalid_rotation: 400,
  key_rotation_not_supported: 400,
  invalid_continuation: 401,
  user_denied: 403,
  request_denied: 403,
  unknown_user: 400,
  unknown_interaction: 400,
  too_fast: 429,
  too_many_attempts: 429,
} as const
