import type { CallToolResult, ServerContext, Tool as ListedTool } from '@modelcontextprotocol/server'
import { jsonSchemaOf, noTool } from '../api/tools.ts'
import type { Management } from '../management.ts'
import { refusalFor } from '../http/problem.ts'
import { type Following, refusalOf, type Tool, type Tools } from '../jobs/tools.ts'
import type { Asker } from './asker.ts'

/** As `tools/list` and the discovery document have them. */
export function listTools({ list }: Tools): ListedTool[] {
  return list.map(({ name, title, description, input, output, annotations }) => ({
    ...{ name, title, description },
    inputSchema: jsonSchemaOf(input, 'input') as ListedTool['inputSchema'],
    outputSchema: jsonSchemaOf(output, 'output') as ListedTool['inputSchema'],
    annotations: { title, ...annotations },
  }))
}

/** Runs it as `/execute` does. What it refuses, arguments too, is for the model to read: a result that is an error. */
export async function callTool(
  tools: Tools,
  {
    name,
    arguments: given,
  }: { readonly name: string; readonly arguments?: Record<string, unknown> | undefined },
  ctx: ServerContext,
  asker: Asker,
  management: Management,
): Promise<CallToolResult> {
  const tool = tools.find(name)
  if (tool === null) throw noTool(tools, name)
  const { following, leave } = followingFor(tool, ctx, asker)
  try {
    const { result, isError } = await tools.call(tool, given, asker.caller, management, '', following)
    return isError ? refused(result) : answered(result)
  } catch (error) {
    const refusal = refusalFor(error)
    if (refusal.code === 'internal') throw error
    return refused(refusalOf(refusal))
  } finally {
    leave()
  }
}

/** Only who can be told how far it is waits for what takes long: for others there is get_task. */
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
    // Who has gone is not told.
    mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined)
  }
  const gone = mcpReq.signal
  // Today leaving says that it is not wanted any more; before, it said nothing.
  if (era === 'modern') return { following: { progress, gone, cancelled: left }, leave: () => undefined }
  const { cancelled, leave } = inFlight.enter(caller.principal.id, mcpReq.id)
  return { following: { progress, gone, cancelled }, leave }
}

function answered(result: unknown): CallToolResult {
  const text = JSON.stringify(result)
  return { content: [{ type: 'text', text }], structuredContent: result as Record<string, unknown> }
}

/** Without structured content: that would have to be as the tool's output schema has it. */
function refused(result: unknown): CallToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(result) }], isError: true }
}
