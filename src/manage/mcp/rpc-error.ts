import type { RequestContext } from '../http/router.ts'
import { refusalFor } from '../http/problem.ts'
import type { Refusal } from '../http/refusal.ts'
import { STATUS_CODES } from '../../shared/node-http.ts'

/** Answers with a JSON-RPC error for anything that was thrown before a message reached the SDK. */
export function sayRpcError(
  ctx: RequestContext,
  error: unknown,
  id: string | number | null,
  failed: (error: Error) => void,
): void {
  const refusal = refusalFor(error)
  if (refusal.code === 'internal') failed(error instanceof Error ? error : new Error(String(error)))
  ctx.state.problem = refusal.code
  ctx.set({ ...refusal.headers })
  ctx.status = refusal.status
  ctx.body = {
    jsonrpc: '2.0',
    error: {
      code: rpcCodeOf(refusal),
      message: refusal.message || STATUS_CODES[refusal.status],
      data: dataOf(refusal, ctx.state.requestId),
    },
    id,
  }
}

/** The id of a message that may be invalid otherwise. */
export function rpcIdIn(message: unknown): string | number | null {
  if (typeof message !== 'object' || message === null || !('id' in message)) return null
  return typeof message.id === 'string' || typeof message.id === 'number' ? message.id : null
}

function rpcCodeOf({ code, errors }: Refusal): number {
  if (code === 'internal') return INTERNAL
  if (code !== 'invalid_request') return SERVER_ERROR
  // An empty pointer means that the body itself could not be parsed.
  return errors[0]?.pointer === '' ? PARSE_ERROR : INVALID_REQUEST
}

function dataOf({ code, errors }: Refusal, requestId: string) {
  return { code, request_id: requestId, ...(errors.length === 0 ? {} : { errors: [...errors] }) }
}

const PARSE_ERROR = -32_700
const INVALID_REQUEST = -32_600
const INTERNAL = -32_603
/** The first code of the range for server errors. `data.code` tells them apart. */
const SERVER_ERROR = -32_000
