import Router from '@koa/router'
import type Koa from 'koa'
import { insufficientScope, mayDoAll, type NamedNeeds } from './access/needed-scopes.ts'
import { mayDo, type Principal } from './access/principal.ts'
import { checkReach } from './access/reach.ts'
import type { HttpContext } from './context.ts'
import { withoutCodings } from './front/entity-tags.ts'
import { addHeaders } from './front/head.ts'
import { invalid, Refusal } from './refusal.ts'
import { bodyIfAny, type CheckBody, readBody, readNoBody } from './body.ts'
import { type GivenAnswer, Idempotency } from './idempotency.ts'
import { type Answer, type AnyOperation, type Call, type FileAnswer, NOTHING } from './operation.ts'
import { pointerToZero, validated } from './validate.ts'

/** What earlier middleware knows about a request. */
export interface RequestState {
  requestId: string
  /** The client's address, see front/client-address.ts. */
  address: string
  principal: Principal
  /**
   * The label in the metrics: an operation id, or one of `probe`, `document`, `gnap`, `oauth`, `mcp`, `a2a`,
   * `preflight` and `none`.
   */
  operation: string
  /** The code of the problem, if the answer is one. */
  problem?: string
  /** Headers of the answer, see head.ts. */
  head: string[]
  /** The answer of an operation. Any other answer is in Koa's `body`. */
  answer?: GivenAnswer
  /** The answer is the same for every client. */
  isPublic?: boolean
  /** How long the answer may be cached without asking again. */
  freshSeconds?: number
  /**
   * Checks that the body is the one that was signed. Set with the signature, called when the body is read.
   */
  checkBody?: CheckBody
  /**
   * Private to this client and this moment: never cache it, and never compress it, because the size after
   * compression gives away what it contains.
   */
  isSecret?: boolean
}

export type RequestContext = Koa.ParameterizedContext<RequestState>
type RoutedContext = RequestContext & { params: Record<string, string> }

/** Answers as a stream if the client wants one and the operation offers one. `false`: answer as usual. */
export type SayStream<Context> = (
  ctx: RequestContext,
  operation: AnyOperation<Context>,
  call: Call<unknown, unknown, unknown, unknown>,
) => Promise<boolean>

/** Answers with a file. */
export type SendFile<Context> = (
  ctx: RequestContext,
  operation: AnyOperation<Context>,
  file: FileAnswer,
) => void

/** Routes each operation of the table under `prefix`. Requests for other paths go to the next middleware. */
export function routesOf<Context extends HttpContext>(
  operations: readonly AnyOperation<Context>[],
  prefix: string,
  management: Context,
  senders: Senders<Context>,
): Koa.Middleware<RequestState> {
  const router = new Router<RequestState>({ prefix, strict: true, sensitive: true })
  const means = { management, idempotency: new Idempotency(management), ...senders }
  for (const operation of operations) {
    const path = operation.path.replaceAll(/\{(\w+)\}/g, ':$1')
    const handler = (ctx: RoutedContext) => serve(ctx, ctx.params, operation, means)
    router.register(path, operation.method === 'GET' ? ['GET', 'HEAD'] : [operation.method], handler)
  }
  const routes = router.routes()
  // Most requests are for a path without parameters, which a map finds at once.
  const fixed = new Map<string, Map<string, AnyOperation<Context>>>()
  for (const operation of operations.filter(({ path }) => !path.includes('{'))) {
    const path = `${prefix}${operation.path}`
    fixed.set(path, (fixed.get(path) ?? new Map()).set(operation.method, operation))
  }
  return (ctx, next) => {
    const { method = '', url = '' } = ctx.req
    // Koa's `path` parses the URL of each request, so try the raw URL first.
    const found = (fixed.get(url) ?? fixed.get(ctx.path))?.get(method)
    if (found !== undefined) return serve(ctx, NO_PARAMS, found, means)
    const { pathAndMethod, path } = router.match(ctx.path, ctx.method)
    if (pathAndMethod.length > 0) return routes(ctx as never, next)
    if (path.length === 0) return next()
    const allowed = new Set(path.flatMap(({ methods }) => methods))
    throw new Refusal('method_not_allowed', `allowed methods: ${[...allowed].join(', ')}`, {
      headers: { Allow: [...allowed].join(', ') },
    })
  }
}

interface Senders<Context> {
  readonly sayStream: SayStream<Context>
  readonly sendFile: SendFile<Context>
}

interface Means<Context> extends Senders<Context> {
  readonly management: Context
  readonly idempotency: Idempotency
}

/** Handles a request to the API after authentication. */
async function serve<Context extends HttpContext>(
  ctx: RequestContext,
  inPath: Record<string, string>,
  operation: AnyOperation<Context>,
  { management, idempotency, sayStream, sendFile }: Means<Context>,
): Promise<void> {
  const { req, state } = ctx
  state.operation = operation.id
  const { principal, requestId, address } = state
  if (!mayDo(principal, operation.scopes)) throw await insufficient(ctx, operation, management)
  checkReach(principal, operation)
  const params: unknown = inPath === NO_PARAMS ? NO_PARAMS : named(operation, inPath)
  const found: unknown = operation.find({ params, principal }, management)
  const subject = found instanceof Promise ? await found : found
  if (subject === null) throw notThere()
  const asksNothing = operation.query === NOTHING && !req.url!.includes('?')
  const query: unknown = asksNothing ? NO_QUERY : validated(operation.query, queryOf(ctx), 'query')
  const reading = operation.body === null ? readNoBody(ctx) : readBody(ctx, operation.bodyBytesMax)
  const sent: unknown = reading instanceof Promise ? await reading : reading
  const body: unknown = operation.body === null ? null : validated(operation.body, sent, 'body')
  const more = operation.moreScopes === null ? null : operation.moreScopes(body)
  if (more !== null && !mayDoAll(principal, more.needs))
    throw insufficientScope(withOwn(operation, more), principal, management.publicUrl)
  const ifMatch = req.headers['if-match']
  // One literal: a spread costs more than all of its members.
  const call: Call<unknown, unknown, unknown, unknown> = {
    params,
    query,
    body,
    subject,
    principal,
    requestId,
    address,
    target: req.url!,
    ifMatch: ifMatch === undefined ? null : withoutCodings(ifMatch) || null,
    lastEventId: ctx.get('Last-Event-ID') || null,
  }
  if (operation.stream !== null && (await sayStream(ctx, operation, call))) return
  if (operation.files !== null) {
    const { body: file } = await operation.run(call, management)
    return sendFile(ctx, operation, file as FileAnswer)
  }
  const key = operation.isIdempotent ? req.headers['idempotency-key'] : undefined
  if (key === undefined) {
    const running = operation.run(call, management)
    state.answer = given(operation, running instanceof Promise ? await running : running)
  } else {
    const asked = { principal: principal.id, method: req.method!, target: req.url!, body: sent }
    const run = async () => given(operation, await operation.run(call, management))
    state.answer = await idempotency.once(String(key), asked, run)
  }
  addHeaders(state.head, state.answer.headers)
}

function given({ status }: AnyOperation, { headers = NO_HEADERS, body }: Answer<unknown>): GivenAnswer {
  return { status, headers, body }
}

/** An impossible name is answered like an unknown one, with 404. */
function named(operation: AnyOperation, params: Record<string, string>): unknown {
  const result = operation.params.safeParse(params)
  if (!result.success || pointerToZero(params) !== null) throw notThere()
  return result.data
}

/** Parses strictly: a lenient parser makes something else of a damaged query than the client meant. */
function queryOf(ctx: RequestContext): Record<string, unknown> {
  const text = ctx.querystring
  if (text === '') return NO_QUERY
  if (!isWellEncoded(text.replaceAll('+', ' ')))
    throw new Refusal('invalid_request', 'the query is not percent-encoded UTF-8')
  const query: Record<string, unknown> = Object.create(null)
  for (const [name, value] of new URLSearchParams(text)) {
    if (name in query) throw invalid([{ pointer: `/${name}`, detail: 'is given more than once' }])
    query[name] = value
  }
  return query
}

function isWellEncoded(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/**
 * Names all scopes that the call needs. Scopes that depend on the body require reading it; an invalid body
 * adds none.
 */
async function insufficient(
  ctx: RequestContext,
  operation: AnyOperation,
  { publicUrl }: Pick<HttpContext, 'publicUrl'>,
): Promise<Refusal> {
  const { moreScopes, bodyBytesMax } = operation
  const more = moreScopes === null ? null : moreScopes(await bodyIfAny(ctx, bodyBytesMax))
  return insufficientScope(withOwn(operation, more), ctx.state.principal, publicUrl)
}

function withOwn({ scopes }: AnyOperation, more: NamedNeeds | null): NamedNeeds {
  return { what: more?.what ?? 'this', needs: [scopes, ...(more?.needs ?? [])] }
}

function notThere(): Refusal {
  return new Refusal('not_found', 'no resource at this path')
}

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({})
const NO_QUERY: Record<string, unknown> = Object.freeze({})
const NO_PARAMS: Record<string, string> = Object.freeze({})
