import { ProtocolErrorCode, specTypeSchemas, type StandardSchemaV1Sync } from '@modelcontextprotocol/server'
import { rpcIdIn } from './rpc-error.ts'

/**
 * Returns an error response if the parameters of the message are invalid, otherwise `null`. Without this
 * check, the SDK would answer with an internal error (-32603) and the text of its schema library.
 */
export function paramsError(message: unknown): Response | null {
  const { method } = message as { readonly method?: unknown }
  const schema = SCHEMAS.get(method)
  if (schema === undefined) return null
  const { issues } = schema['~standard'].validate(message)
  const [first] = issues ?? []
  if (first === undefined) return null
  const place = (first.path ?? []).map((part) => (typeof part === 'object' ? part.key : part)).join('.')
  const error = { code: ProtocolErrorCode.InvalidParams, message: `${place}: ${first.message}` }
  return Response.json({ jsonrpc: '2.0', id: rpcIdIn(message), error })
}

const SCHEMAS = new Map<unknown, StandardSchemaV1Sync>([
  ['tools/list', specTypeSchemas.ListToolsRequest],
  ['tools/call', specTypeSchemas.CallToolRequest],
  ['resources/list', specTypeSchemas.ListResourcesRequest],
  ['resources/templates/list', specTypeSchemas.ListResourceTemplatesRequest],
  ['resources/read', specTypeSchemas.ReadResourceRequest],
  ['prompts/list', specTypeSchemas.ListPromptsRequest],
  ['prompts/get', specTypeSchemas.GetPromptRequest],
  ['completion/complete', specTypeSchemas.CompleteRequest],
])
