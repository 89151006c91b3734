import {
  type AuthInfo,
  createMcpHandler,
  type McpHttpHandler,
  ProtocolErrorCode,
  specTypeSchemas,
  type StandardSchemaV1Sync,
} from '@modelcontextprotocol/server'
import type { ApiContext } from '../api/context.ts'
import type { Asker, MakeServer } from './asker.ts'
import { rpcIdIn } from './rpc-error.ts'

export interface McpRequest extends Omit<Asker, 'era'> {
  readonly management: ApiContext
  readonly headers: Headers
  /** The JSON-RPC message. */
  readonly message: unknown
  /** Aborts when the response must end. */
  readonly over: AbortSignal
}

/**
 * Runs the protocol with the SDK, which makes a server for each message. Loaded at the first request because
 * the SDK is large.
 */
export class McpServing {
  readonly #handler: McpHttpHandler
  readonly #asking = new WeakMap<AuthInfo, McpRequest>()

  constructor(makeServer: MakeServer) {
    this.#handler = createMcpHandler(
      ({ authInfo, era }) => {
        const asking = this.#asking.get(authInfo!)!
        return makeServer({ ...asking, era }, asking.management)
      },
      { maxSubscriptions: Number.MAX_SAFE_INTEGER },
    )
  }

  async answer(asking: McpRequest): Promise<Response> {
    const { headers, message, over, caller } = asking
    const wrong = paramsError(message)
    if (wrong !== null) return wrong
    // The caller is already authenticated. This object only links the SDK's request to the caller.
    const authInfo: AuthInfo = {
      token: '',
      clientId: caller.principal.id,
      scopes: [...caller.principal.scopes],
    }
    this.#asking.set(authInfo, asking)
    const request = new Request(ANYWHERE, { method: 'POST', headers, signal: over })
    return this.#handler.fetch(request, { authInfo, parsedBody: message })
  }

  /** Notifies subscribers that agents and signatures changed. */
  catalogueChanged(): void {
    const { notify } = this.#handler
    notify.resourcesChanged()
    for (const uri of CHANGING) notify.resourceUpdated(uri)
  }

  resourceChanged(uri: string): void {
    this.#handler.notify.resourceUpdated(uri)
  }

  close(): Promise<void> {
    return this.#handler.close()
  }
}

/** A placeholder: the body is already read and the path already matched. */
const ANYWHERE = 'http://localhost/mcp'
const CHANGING = ['gatehouse://agents', 'gatehouse://signatures']

/**
 * Returns an error response if the parameters of the message are invalid, otherwise `null`. Without this
 * check, the SDK would answer with an internal error (-32603) and the text of its schema library.
 */
function paramsError(message: unknown): Response | null {
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
