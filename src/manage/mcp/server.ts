import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError, Server } from '@modelcontextprotocol/server'
import { TOOLS } from '../api/operations.ts'
import type { ApiContext } from '../api/context.ts'
import { refusalFor } from '../http/problem.ts'
import { Refusal } from '../http/refusal.ts'
import type { ToolCaller } from '../jobs/tools.ts'
import type { MakeServer } from './asker.ts'
import { complete } from './completions.ts'
import { capabilities, INSTRUCTIONS, SERVER } from './offer.ts'
import { fillPrompt, listPrompts } from './prompts.ts'
import { listResources, listTemplates, readResource } from './resources.ts'
import { callTool, listTools } from './tool-calls.ts'

/** Makes a server for one message. Each answer comes from the function that answers the API. */
export const makeServer: MakeServer = (asker, management) => {
  const { caller } = asker
  const { version } = management
  const server = new Server(
    { ...SERVER, version, websiteUrl: `${management.publicUrl}/docs` },
    {
      capabilities: capabilities(asker.era === 'legacy'),
      instructions: INSTRUCTIONS,
      cacheHints: CACHE_HINTS,
    },
  )
  const { answering } = new Answers(management)
  server.setRequestHandler(
    'tools/list',
    answering(({ params }) => whole(params, { tools: LISTED_TOOLS })),
  )
  server.setRequestHandler(
    'tools/call',
    answering(async ({ params }, ctx) => {
      const result = await callTool(TOOLS, params, ctx, asker, management)
      return server.projectCallToolResult(result, undefined)
    }),
  )
  server.setRequestHandler(
    'resources/list',
    answering(async ({ params }) => {
      const { resources, nextCursor } = await listResources(params?.cursor ?? null, caller, management)
      return { resources: [...resources], ...(nextCursor === null ? {} : { nextCursor }) }
    }),
  )
  server.setRequestHandler(
    'resources/templates/list',
    answering(({ params }) => whole(params, { resourceTemplates: listTemplates(caller) })),
  )
  server.setRequestHandler(
    'resources/read',
    answering(async ({ params: { uri } }) => {
      const text = JSON.stringify(await read(uri, caller, management))
      return { contents: [{ uri, mimeType: 'application/json', text }] }
    }),
  )
  server.setRequestHandler(
    'prompts/list',
    answering(({ params }) => whole(params, { prompts: listPrompts() })),
  )
  server.setRequestHandler(
    'prompts/get',
    answering(({ params }) => {
      const { description, text } = fillPrompt(params.name, params.arguments)
      return { description, messages: [{ role: 'user', content: { type: 'text', text } }] }
    }),
  )
  server.setRequestHandler(
    'completion/complete',
    answering(async ({ params: { ref, argument, context } }) => {
      const filled = context?.arguments ?? {}
      const { values, hasMore } = await complete({ ref, argument, filled }, caller, management)
      return { completion: { values: [...values], hasMore } }
    }),
  )
  return server
}

/** Converts thrown errors to protocol errors. Bugs go to the log, not to the caller. */
class Answers {
  readonly #management: ApiContext

  constructor(management: ApiContext) {
    this.#management = management
  }

  readonly answering =
    <Request, Context, Result>(answer: (request: Request, ctx: Context) => Result | Promise<Result>) =>
    async (request: Request, ctx: Context): Promise<Result> => {
      try {
        return await answer(request, ctx)
      } catch (error) {
        throw error instanceof ProtocolError ? error : this.#errorFor(error)
      }
    }

  #errorFor(error: unknown): ProtocolError {
    const refusal = refusalFor(error)
    const { code, message, errors } = refusal
    if (code === 'internal')
      this.#management.log.error('failed to answer an MCP request', { error: error as Error })
    const isTheirs = refusal.status < 500
    return new ProtocolError(
      isTheirs ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError,
      message,
      { code, ...(errors.length === 0 ? {} : { errors: [...errors] }) },
    )
  }
}

async function read(uri: string, caller: ToolCaller, management: ApiContext): Promise<unknown> {
  try {
    return await readResource(uri, caller, management)
  } catch (error) {
    if (error instanceof Refusal && error.code === 'not_found')
      throw new ResourceNotFoundError(uri, error.message)
    throw error
  }
}

/** Answers with a complete list. A cursor is refused. */
function whole<Result>(params: { readonly cursor?: string | undefined } | undefined, result: Result): Result {
  if (params?.cursor !== undefined)
    throw new Refusal('invalid_request', 'this list has only one page: send no cursor')
  return result
}

const LISTED_TOOLS = listTools(TOOLS)
/** The same for all callers until the version changes. */
const FIXED = { ttlMs: 300_000, cacheScope: 'public' } as const
const CACHE_HINTS = {
  'tools/list': FIXED,
  'prompts/list': FIXED,
  'server/discover': FIXED,
  'resources/templates/list': { ttlMs: 300_000, cacheScope: 'private' },
  'resources/list': { ttlMs: 10_000, cacheScope: 'private' },
  'resources/read': { ttlMs: 0, cacheScope: 'private' },
} as const
