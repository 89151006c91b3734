import { bodyIfAny } from '../http/body.ts'
import type { RequestContext } from '../http/router.ts'
import type { NamedNeeds } from '../http/access/needed-scopes.ts'
import type { ApiContext } from '../api/context.ts'
import { neededBy, type Tools, withDoor } from '../jobs/tools.ts'
import { requestedTool } from './requested-tool.ts'
import { BODY_BYTES_MAX } from './json-rpc.ts'
import { REST_PATH } from './protocol.ts'
import { sendParams } from './requests.ts'

/**
 * The scopes that a call in either binding needs: `mcp`, and those of the tool that the message names. Reads
 * the body.
 */
export async function neededFor(ctx: RequestContext, tools: Tools<ApiContext>): Promise<NamedNeeds> {
  return withDoor(ofMessage(paramsIn(ctx, await bodyIfAny(ctx, BODY_BYTES_MAX)), tools))
}

/** The parameters of a method that sends a message; `null` for other methods. */
function paramsIn(ctx: RequestContext, body: unknown): unknown {
  const path = ctx.req.url!.split('?', 1)[0]!
  if (path.startsWith(`${REST_PATH}/`)) return path.startsWith(`${REST_PATH}/message:`) ? body : null
  const { method, params } = Object(body) as { method?: unknown; params?: unknown }
  return method === 'SendMessage' || method === 'SendStreamingMessage' ? params : null
}

function ofMessage(params: unknown, tools: Tools<ApiContext>): NamedNeeds {
  const read = sendParams.safeParse(params)
  if (!read.success) return A2A
  try {
    const { tool, given } = requestedTool(read.data.message, tools)
    return neededBy(tool, given)
  } catch {
    return A2A // the message names no tool
  }
}

const A2A: NamedNeeds = { what: 'this', needs: [] }
