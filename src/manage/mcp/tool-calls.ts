import type { CallToolResult, ServerContext, Tool as ListedTool } from '@modelcontextprotocol/server'
import type { ApiContext } from '../api/context.ts'
import { jsonSchemaOf, noTool } from '../api/tools.ts'
import { refusalFor } from '../http/problem.ts'
import { type Following, refusalOf, type Tool, type Tools } from '../jobs/tools.ts'
import type { Asker } from './asker.ts'

/** The tools as `tools/list` and the discovery document list them. */
export function listTools({ list }: Tools): ListedTool[] {
  return list.map(({ name, title, description, input, output, annotations }) => ({
    name,
    title,
    description,
    inputSchema: jsonSchemaOf(input, 'input') as ListedTool['inputSchema'],
    outputSchema: jsonSchemaOf(output, 'output') as ListedTool['inputSchema'],
    annotations: { title, ...annotations },
  }))
}

/**
 * Runs a tool as `/execute` does. Refusals, also of arguments, become an error result that the model can
 * read.
 */
export async function callTool(
  tools: Tools<ApiContext>,
  {
    name,
    arguments: given,
  }: { readonly name: string; readonly arguments?: Record<string, unknown> | undefined },
  ctx: ServerContext,
  asker: Asker,
  management: ApiContext,
): Promise<CallToolResult> {
  const tool = tools.find(name)
  if (tool === null) throw noTool(tools, name)
  const { following, leave } = followingFor(tool, ctx, asker)
  try {
    const call = { given, caller: asker.caller, pointer: '', following }
    const { result, isError } = await tools.call(tool, call, management)
    return isError ? refused(result) : answered(result)
  } catch (error) {
    const refusal = refusalFor(error)
    if (refusal.code === 'internal') throw error
    return refused(refusalOf(refusal))
  } finally {
    leave()
  }
}

/** A call waits for a long tool only if the client accepts progress. Other clients use get_task. */
function followingFor(
  tool: Tool,
  { mcpReq }: ServerContext,
  { caller, era, left, inFlight }: Asker,
): { readonly following: Following | null; leave(): void } {
  const progressToken = mcpReq._meta?.progressToken
  if (progressToken === undefined || tool.follow === undefined)
    return { following: null, leave: () => undefined }
  const progress: Following['progress'] = (completed, total) => {
    const params = { progressToken, progress: completed, total, message: `${completed} of ${total} items` }
    // A client that disconnected gets no progress.
    mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined)
  }
  const gone = mcpReq.signal
  // In the modern protocol, a disconnect cancels the call. Older clients send a cancel notification.
  if (era === 'modern') return { following: { progress, gone, cancelled: left }, leave: () => undefined }
  const { cancelled, leave } = inFlight.enter(caller.principal.id, mcpReq.id)
  return { following: { progress, gone, cancelled }, leave }
}

function answered(result: unknown): CallToolResult {
  const text = JSON.stringify(result)
  return { content: [{ type: 'text', text }], structuredContent: result as Record<string, unknown> }
}

/** Without structured content, because it would have to match the tool's output schema. */
function refused(result: unknown): CallToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(result) }], isError: true }
}
