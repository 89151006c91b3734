import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { bodyIfAny, readBody } from '../http/body.ts'
import { TOOLS } from '../api/operations.ts'
import type { RequestContext } from '../http/router.ts'
import { admit } from '../auth/admission.ts'
import { mayDo } from '../http/access/principal.ts'
import { beginStream } from '../auth/stream-life.ts'
import { sayEventStream } from '../events/event-stream.ts'
import type { ApiContext } from '../api/context.ts'
import type { PolicyTexts } from '../../plane/snapshot-policies.ts'
import { Refusal } from '../http/refusal.ts'
import { InFlight } from './in-flight.ts'
import { checkPlace } from './place.ts'
import { rpcIdIn, sayRpcError } from './rpc-error.ts'
import { appPolicyUri, POLICY_URI } from './resources.ts'
import { checkScopes, MAY } from './scope-needed.ts'
import type { MakeServer } from './asker.ts'
import type { McpServing } from './serving.ts'

interface McpSettings {
  readonly publicUrl: string
  /** Origins whose pages may send requests, besides our own. */
  readonly origins: readonly string[]
  /** Replaces the server in tests. */
  readonly makeServer?: MakeServer
}

/**
 * MCP over HTTP at /mcp (streamable HTTP, without sessions). This class makes the same checks as the API, in
 * the same order. The SDK handles the messages.
 */
export class McpEndpoint {
  readonly #settings: McpSettings
  readonly #inFlight = new InFlight()
  #serving: Promise<McpServing> | null = null
  /** The policies in force, as JSON, by the URI of their resource. */
  #policies: ReadonlyMap<string, string> = new Map()
  #isClosed = false

  constructor(settings: McpSettings) {
    this.#settings = settings
  }

  /** `management`: `null` while the database is unavailable. */
  async answer(ctx: RequestContext, management: ApiContext | null): Promise<void> {
    ctx.state.operation = 'mcp'
    let message: unknown = null
    try {
      checkPlace(ctx.req, this.#settings.publicUrl, this.#settings.origins)
      if (management === null) throw closed()
      await this.#letIn(ctx, management)
      // If the caller lacks `mcp`, the challenge also names the other scopes that the message needs.
      message = mayDo(ctx.state.principal, MAY)
        ? await readBody(ctx, BODY_BYTES_MAX)
        : await bodyIfAny(ctx, BODY_BYTES_MAX)
      checkScopes(message, ctx.state.principal, TOOLS, this.#settings.publicUrl)
      this.#check(message, ctx)
      await this.#serve(ctx, message, management)
    } catch (error) {
      sayRpcError(ctx, error, rpcIdIn(message), (bug) =>
        management?.log.error('failed to answer an MCP request', { error: bug }),
      )
    }
  }

  /** Tells subscribers that agents and signatures changed, and each policy that differs. */
  async changed({ policy, appPolicies = [] }: PolicyTexts): Promise<void> {
    const before = this.#policies
    const now = new Map([
      [POLICY_URI, JSON.stringify(policy)],
      ...appPolicies.map(({ app, document }) => [appPolicyUri(app), document] as const),
    ])
    this.#policies = now
    const uris = new Set([...before.keys(), ...now.keys()])
    const serving = await this.#serving
    serving?.catalogueChanged()
    for (const uri of uris) if (before.get(uri) !== now.get(uri)) serving?.resourceChanged(uri)
  }

  /** From now on, a disconnect comes from us and does not mean that the client left. */
  async close(): Promise<void> {
    this.#isClosed = true
    await (await this.#serving)?.close()
  }

  async #letIn(ctx: RequestContext, management: ApiContext): Promise<void> {
    await admit(ctx, management, 'mcp')
    if (ctx.method !== 'POST')
      throw new Refusal(
        'method_not_allowed',
        'messages must be sent with POST: this server has no sessions to stream from',
        {
          headers: { Allow: 'POST' },
        },
      )
  }

  #check(message: unknown, { state }: RequestContext): void {
    // A list of messages would count as one request for the rate limit.
    if (Array.isArray(message))
      throw new Refusal('invalid_request', 'batches are not supported: send one message per request')
    if (typeof message !== 'object' || message === null)
      throw new Refusal('invalid_request', 'invalid JSON-RPC 2.0 message: expected an object')
    this.#cancelFor(message, state.principal.id)
  }

  /** Handles the cancel notification of older protocol versions. */
  #cancelFor(message: object, principal: string): void {
    const { method, params } = message as { method?: unknown; params?: { requestId?: unknown } | null }
    const id = params?.requestId
    if (method !== 'notifications/cancelled' || (typeof id !== 'string' && typeof id !== 'number')) return
    this.#inFlight.cancel(principal, id)
  }

  async #serve(ctx: RequestContext, message: unknown, management: ApiContext): Promise<void> {
    const { principal, requestId } = ctx.state
    const life = beginStream(ctx, management, MAY, 'mcp')
    const left = new AbortController()
    life.left.addEventListener('abort', () => {
      if (!this.#isClosed) left.abort()
    })
    this.#serving ??= load(this.#settings.makeServer)
    const serving = await this.#serving
    const caller = { principal, requestId, address: ctx.state.address }
    const response = await serving.answer({
      caller,
      management,
      message,
      left: left.signal,
      over: life.over,
      inFlight: this.#inFlight,
      headers: headersOf(ctx),
    })
    await put(ctx, response)
  }
}

/** Only the headers that the protocol defines. Credentials are not passed on. */
function headersOf({ req }: RequestContext): Headers {
  const headers = new Headers()
  for (const [name, value] of Object.entries(req.headers))
    if (typeof value === 'string' && TAKEN.test(name)) headers.set(name, value)
  return headers
}

async function put(ctx: RequestContext, { status, headers, body }: Response): Promise<void> {
  const type = headers.get('content-type')
  if (body === null) ctx.body = null
  else if (type?.startsWith('text/event-stream') === true)
    sayEventStream(ctx, Readable.fromWeb(body as ReadableStream))
  else ctx.body = Buffer.from(await new Response(body).arrayBuffer())
  if (type !== null) ctx.set('Content-Type', type)
  const allow = headers.get('allow')
  if (allow !== null) ctx.set('Allow', allow)
  ctx.status = status
}

async function load(given: MakeServer | undefined): Promise<McpServing> {
  const [{ McpServing }, { makeServer }] = await Promise.all([import('./serving.ts'), import('./server.ts')])
  return new McpServing(given ?? makeServer)
}

function closed(): Refusal {
  return new Refusal('unavailable', 'the database is unavailable', { headers: { 'Retry-After': '5' } })
}

const TAKEN = /^(?:accept|content-type|last-event-id|mcp-[a-z-]+)$/
/** Large enough for the items of a task. */
const BODY_BYTES_MAX = 8 * 1_048_576
