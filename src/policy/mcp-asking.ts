import type { Policy } from './policy.ts'
import type { PolicyRequest } from './request.ts'

/** The facts of a request that are known before its body. */
export interface McpTarget {
  readonly method: string
  readonly host: string | null
  readonly path: string
}

/**
 * Whether a rule that asks for the call can hold for the request, as far as its method, host and path say. Only then
 * the body is read.
 */
export function mayAskForCall(
  { layers, asked }: Policy,
  target: McpTarget,
  nowMs: number,
  request: PolicyRequest,
): boolean {
  request.readTarget(target, asked)
  for (const { mcp } of layers)
    for (const { test, expiresMs } of mcp) {
      if (nowMs >= expiresMs) continue
      request.isPlain = false
      if (test(request)) return true
      if (request.plainPath === null) continue
      request.isPlain = true
      if (test(request)) return true
    }
  return false
}
