import { refusalFor } from '../http/problem.ts'
import type { RequestContext } from '../http/router.ts'
import type { FieldError, ProblemCode } from '../http/refusal.ts'

/** An error in A2A's format. Both bindings report the same error (A2A 1.0 §5.4, §9.5, §11.6). */
export class A2AError extends Error {
  readonly reason: ErrorReason
  readonly metadata: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  readonly errors: readonly FieldError[]

  constructor(
    reason: ErrorReason,
    message: string,
    {
      metadata = {},
      headers = {},
      errors = [],
    }: {
      readonly metadata?: Readonly<Record<string, string>>
      readonly headers?: Readonly<Record<string, string>>
      readonly errors?: readonly FieldError[]
    } = {},
  ) {
    super(message)
    this.name = 'A2AError'
    this.reason = reason
    this.metadata = metadata
    this.headers = headers
    this.errors = errors
  }

  /** The HTTP status. The JSON-RPC binding answers 200 instead if the call itself was parsed. */
  get status(): number {
    return REASONS[this.reason].status
  }

  /** For metrics and the access log. */
  get problem(): ProblemCode {
    return REASONS[this.reason].problem
  }
}

/** Converts anything that was thrown to the error for the client. */
export function a2aErrorOf(error: unknown): A2AError {
  if (error instanceof A2AError) return error
  const { status, message, headers, errors } = refusalFor(error)
  return new A2AError(BY_STATUS.get(status) ?? 'INVALID_PARAMS', message, { headers, errors })
}

/** The same, and reports the error to the log and the metrics of the request. */
export function reportedError(error: unknown, ctx: RequestContext): A2AError {
  const said = a2aErrorOf(error)
  if (said.reason === 'INTERNAL') ctx.app.emit('error', error, ctx)
  ctx.state.problem = said.problem
  return said
}

/** The `error` member of a JSON-RPC response. */
export function rpcErrorOf(error: A2AError) {
  return { code: REASONS[error.reason].code, message: error.message, data: detailsOf(error) }
}

/** The error as a google.rpc.Status, for the HTTP+JSON binding. */
export function restErrorOf(error: A2AError) {
  const { status: code, name: status } = REASONS[error.reason]
  return { error: { code, status, message: error.message, details: detailsOf(error) } }
}

function detailsOf({ reason, metadata, errors }: A2AError): readonly Readonly<Record<string, unknown>>[] {
  const { domain } = REASONS[reason]
  const said = Object.keys(metadata).length === 0 ? {} : { metadata }
  const info = { '@type': `${TYPES}ErrorInfo`, reason, domain, ...said }
  if (errors.length === 0) return [info]
  const fieldViolations = errors.map(({ pointer, detail }) => ({
    field: fieldOf(pointer),
    description: detail,
  }))
  return [info, { '@type': `${TYPES}BadRequest`, fieldViolations }]
}

/** Writes `/message/parts/0/text` as `message.parts[0].text`. */
function fieldOf(pointer: string): string {
  const names = pointer.split('/').slice(1)
  const path = names.map((name) =>
    /^\d+$/.test(name) ? `[${name}]` : `.${name.replaceAll('~1', '/').replaceAll('~0', '~')}`,
  )
  return path.join('').replace(/^\./, '')
}

type ErrorReason = keyof typeof REASONS

const TYPES = 'type.googleapis.com/google.rpc.'
const A2A = 'a2a-protocol.org'
const OURS = 'gatehouse'
/** Uses A2A's code where A2A defines one. Our own codes avoid -32001 to -32099, which A2A reserves. */
const REASONS = {
  TASK_NOT_FOUND: { code: -32001, status: 404, name: 'NOT_FOUND', domain: A2A, problem: 'not_found' },
  TASK_NOT_CANCELABLE: {
    code: -32002,
    status: 400,
    name: 'FAILED_PRECONDITION',
    domain: A2A,
    problem: 'conflict',
  },
  UNSUPPORTED_OPERATION: {
    code: -32004,
    status: 400,
    name: 'FAILED_PRECONDITION',
    domain: A2A,
    problem: 'invalid_request',
  },
  CONTENT_TYPE_NOT_SUPPORTED: {
    code: -32005,
    status: 400,
    name: 'INVALID_ARGUMENT',
    domain: A2A,
    problem: 'unsupported_media_type',
  },
  VERSION_NOT_SUPPORTED: {
    code: -32009,
    status: 400,
    name: 'FAILED_PRECONDITION',
    domain: A2A,
    problem: 'invalid_request',
  },
  PARSE_ERROR: {
    code: -32700,
    status: 400,
    name: 'INVALID_ARGUMENT',
    domain: OURS,
    problem: 'invalid_request',
  },
  INVALID_REQUEST: {
    code: -32600,
    status: 400,
    name: 'INVALID_ARGUMENT',
    domain: OURS,
    problem: 'invalid_request',
  },
  METHOD_NOT_FOUND: { code: -32601, status: 404, name: 'NOT_FOUND', domain: OURS, problem: 'not_found' },
  METHOD_NOT_ALLOWED: {
    code: -32600,
    status: 405,
    name: 'UNIMPLEMENTED',
    domain: OURS,
    problem: 'method_not_allowed',
  },
  INVALID_PARAMS: {
    code: -32602,
    status: 400,
    name: 'INVALID_ARGUMENT',
    domain: A2A,
    problem: 'invalid_request',
  },
  TOO_LARGE: { code: -32600, status: 413, name: 'INVALID_ARGUMENT', domain: OURS, problem: 'too_large' },
  UNAUTHENTICATED: {
    code: -32000,
    status: 401,
    name: 'UNAUTHENTICATED',
    domain: OURS,
    problem: 'invalid_token',
  },
  PERMISSION_DENIED: {
    code: -32000,
    status: 403,
    name: 'PERMISSION_DENIED',
    domain: OURS,
    problem: 'insufficient_scope',
  },
  RESOURCE_EXHAUSTED: {
    code: -32000,
    status: 429,
    name: 'RESOURCE_EXHAUSTED',
    domain: OURS,
    problem: 'rate_limited',
  },
  UNAVAILABLE: { code: -32000, status: 503, name: 'UNAVAILABLE', domain: OURS, problem: 'unavailable' },
  INTERNAL: { code: -32603, status: 500, name: 'INTERNAL', domain: OURS, problem: 'internal' },
} as const satisfies Record<string, Meaning>

interface Meaning {
  readonly code: number
  readonly status: number
  readonly name: string
  readonly domain: string
  readonly problem: ProblemCode
}

/** The reason for each status of a Refusal. Every other status means invalid parameters. */
const BY_STATUS: ReadonlyMap<number, ErrorReason> = new Map([
  [401, 'UNAUTHENTICATED'],
  [403, 'PERMISSION_DENIED'],
  [405, 'METHOD_NOT_ALLOWED'],
  [413, 'TOO_LARGE'],
  [415, 'CONTENT_TYPE_NOT_SUPPORTED'],
  [429, 'RESOURCE_EXHAUSTED'],
  [500, 'INTERNAL'],
  [503, 'UNAVAILABLE'],
])
