import type Koa from 'koa'
import { TOOLS } from '../api/operations.ts'
import type { RequestContext, RequestState } from '../http/router.ts'
import { admit } from '../auth/admission.ts'
import { insufficientScope } from '../http/access/needed-scopes.ts'
import { mayDo } from '../http/access/principal.ts'
import type { ApiContext } from '../api/context.ts'
import { sayPublicDocument } from '../http/front/public-document.ts'
import { TaskWatch } from '../jobs/task-watch.ts'
import { A2AError, a2aErrorOf, restErrorOf, rpcErrorOf } from './a2a-error.ts'
import { CARD_PATH, REST_PATH, REST_TYPE, RPC_PATH } from './protocol.ts'
import type { A2AService } from './service.ts'

/** Whether the URL is one of the A2A endpoints. */
export function isOfA2A(url: string): boolean {
  const path = pathOf(url)
  return path === CARD_PATH || path === RPC_PATH || path.startsWith(`${REST_PATH}/`)
}

/**
 * The endpoints of A2A 1.0: the agent card and both bindings. The protocol's code is loaded at the first
 * request for it. `management`: `null` while the database is unavailable.
 */
export function a2aEndpoints(
  management: () => ApiContext | null,
  hasPeople: boolean,
): Koa.Middleware<RequestState> {
  const services = new WeakMap<ApiContext, Promise<A2AService>>()
  const serviceOf = (present: ApiContext) => {
    const service = services.get(present) ?? load(present, hasPeople)
    services.set(present, service)
    return service
  }
  return async (ctx) => {
    const binding = bindingOf(pathOf(ctx.req.url!))
    ctx.state.operation = binding === 'card' ? 'document' : 'a2a'
    try {
      const present = management()
      if (present === null) throw notOpen()
      if (binding === 'card') return await sayCard(ctx, await serviceOf(present))
      await admit(ctx, present)
      if (!mayDo(ctx.state.principal, ['mcp'])) await refuse(ctx, present)
      const service = await serviceOf(present)
      if (binding === 'json-rpc') await (await import('./json-rpc.ts')).answerRpc(ctx, service)
      else await (await import('./rest.ts')).answerRest(ctx, service)
    } catch (error) {
      sayError(ctx, error, binding)
    }
  }
}

/** Reports errors that occur before a binding has read the request. The bindings report their own errors. */
function sayError(ctx: RequestContext, error: unknown, binding: Binding): void {
  const said = a2aErrorOf(error)
  if (said.reason === 'INTERNAL') ctx.app.emit('error', error, ctx)
  ctx.state.problem = said.problem
  ctx.set({ ...said.headers })
  ctx.body =
    binding === 'json-rpc' ? { jsonrpc: '2.0', id: null, error: rpcErrorOf(said) } : restErrorOf(said)
  ctx.type = binding === 'json-rpc' ? 'application/json' : REST_TYPE
  ctx.status = said.status
}

async function sayCard(ctx: RequestContext, { cards }: A2AService): Promise<void> {
  const { text, tag } = await cards.public()
  sayPublicDocument(ctx, text)
  ctx.state.freshSeconds = FRESH_S
  ctx.set('ETag', tag)
}

/** Refuses with a challenge that names the scopes that the message needs besides `mcp`. */
async function refuse(ctx: RequestContext, { publicUrl }: ApiContext): Promise<never> {
  const { neededFor } = await import('./scope-needed.ts')
  throw insufficientScope(await neededFor(ctx, TOOLS), ctx.state.principal, publicUrl)
}

type Binding = 'card' | 'json-rpc' | 'http+json'

function bindingOf(path: string): Binding {
  if (path === CARD_PATH) return 'card'
  return path === RPC_PATH ? 'json-rpc' : 'http+json'
}

/** The path as sent. Koa's own `path` throws on an invalid URL. */
function pathOf(url: string): string {
  return url.split('?', 1)[0]!
}

async function load(management: ApiContext, hasPeople: boolean): Promise<A2AService> {
  const { AgentCards } = await import('./agent-card.ts')
  const cards = new AgentCards(management, TOOLS, hasPeople)
  return { management, tools: TOOLS, cards, watch: new TaskWatch(management.store) }
}

function notOpen(): A2AError {
  return new A2AError('UNAVAILABLE', 'the database is unavailable', { headers: { 'Retry-After': '5' } })
}

/** A key starts to sign a day after it is published, and stays published for a time after it stops. */
const FRESH_S = 300
