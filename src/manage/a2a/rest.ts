import { formatSSEErrorEvent, formatSSEEvent } from '@a2a-js/sdk'
import { hasBody, readBody } from '../http/body.ts'
import type { RequestContext } from '../http/router.ts'
import { invalid, Refusal } from '../http/refusal.ts'
import { A2AError, reportedError, restErrorOf } from './a2a-error.ts'
import { answered, checkVersion, streamed } from './answering.ts'
import { BODY_BYTES_MAX } from './json-rpc.ts'
import { METHODS, type A2AMethod } from './methods.ts'
import { REST_PATH, REST_TYPE } from './protocol.ts'
import type { A2AService } from './service.ts'

/** The HTTP+JSON binding (A2A 1.0 §11). It maps paths to the same methods. */
export async function answerRest(ctx: RequestContext, service: A2AService): Promise<void> {
  try {
    const { route, ids } = routeOf(ctx)
    checkVersion(ctx)
    const given = route.takesBody ? await bodyOf(ctx) : queryOf(ctx)
    const params = { ...given, ...ids }
    const method: A2AMethod = METHODS[route.method]
    if (method.kind === 'stream') return await streamed(method, params, ctx, service, form(ctx))
    const body = await answered(method, params, ctx, service)
    if (body === null) {
      ctx.body = null
      return
    }
    say(ctx, body as object, route.status ?? 200)
  } catch (error) {
    const said = reportedError(error, ctx)
    ctx.set({ ...said.headers })
    say(ctx, restErrorOf(said), said.status)
  }
}

function form(ctx: RequestContext) {
  return {
    value: (value: unknown) => formatSSEEvent(value),
    error: (error: unknown) => formatSSEErrorEvent(restErrorOf(reportedError(error, ctx))),
  }
}

function say(ctx: RequestContext, body: object, status: number): void {
  ctx.body = body
  ctx.set('Content-Type', REST_TYPE)
  ctx.status = status
}

interface RestRoute {
  readonly verb: 'GET' | 'POST' | 'DELETE'
  /** Has one group for each id. */
  readonly path: RegExp
  readonly ids: readonly ('id' | 'taskId')[]
  readonly method: keyof typeof METHODS
  readonly takesBody: boolean
  readonly status?: 201
}

function routeOf(ctx: RequestContext): { readonly route: RestRoute; readonly ids: Record<string, string> } {
  const path = ctx.req.url!.split('?', 1)[0]!.slice(REST_PATH.length)
  const here = ROUTES.filter((route) => route.path.test(path))
  if (here.length === 0) throw new A2AError('METHOD_NOT_FOUND', 'unknown path')
  const verb = ctx.method === 'HEAD' ? 'GET' : ctx.method
  const route = here.find((each) => each.verb === verb)
  if (route === undefined) {
    const Allow = here.map((each) => each.verb).join(', ')
    throw new Refusal('method_not_allowed', `method not allowed: use ${Allow}`, { headers: { Allow } })
  }
  const [, ...found] = route.path.exec(path)!
  return { route, ids: Object.fromEntries(route.ids.map((name, index) => [name, decoded(found[index]!)])) }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text // malformed encoding: matches no id
  }
}

async function bodyOf(ctx: RequestContext): Promise<Record<string, unknown>> {
  if (!hasBody(ctx)) return {}
  const body = await readBody(ctx, BODY_BYTES_MAX)
  if (typeof body === 'object' && body !== null && !Array.isArray(body))
    return body as Record<string, unknown>
  throw invalid([{ pointer: '', detail: 'must be an object' }])
}

/** Converts numbers and booleans from text, because a query has only text (§11.5). */
function queryOf(ctx: RequestContext): Record<string, unknown> {
  const query = new URLSearchParams(ctx.querystring)
  const given: Record<string, unknown> = {}
  for (const name of TEXTS) if (query.has(name)) given[name] = query.get(name)
  for (const name of NUMBERS)
    if (query.has(name))
      given[name] = /^-?\d{1,15}$/.test(query.get(name)!) ? Number(query.get(name)) : query.get(name)
  for (const name of TRUTHS) if (query.has(name)) given[name] = TRUTH.get(query.get(name)!) ?? query.get(name)
  return given
}

const TEXTS = ['contextId', 'status', 'pageToken', 'statusTimestampAfter']
const NUMBERS = ['pageSize', 'historyLength']
const TRUTHS = ['includeArtifacts']
const TRUTH: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['false', false],
])

const ID = '([^/:]+)'
const CONFIGS = `/tasks/${ID}/pushNotificationConfigs`
const ROUTES: readonly RestRoute[] = [
  to('POST', '/message:send', 'SendMessage'),
  to('POST', '/message:stream', 'SendStreamingMessage'),
  to('GET', '/tasks', 'ListTasks'),
  to('GET', `/tasks/${ID}`, 'GetTask', ['id']),
  to('POST', `/tasks/${ID}:cancel`, 'CancelTask', ['id']),
  // The specification's text and its protocol buffers differ in the verb, so both are accepted.
  to('POST', `/tasks/${ID}:subscribe`, 'SubscribeToTask', ['id']),
  to('GET', `/tasks/${ID}:subscribe`, 'SubscribeToTask', ['id']),
  { ...to('POST', CONFIGS, 'CreateTaskPushNotificationConfig', ['taskId']), status: 201 },
  to('GET', CONFIGS, 'ListTaskPushNotificationConfigs', ['taskId']),
  to('GET', `${CONFIGS}/([^/]+)`, 'GetTaskPushNotificationConfig', ['taskId', 'id']),
  to('DELETE', `${CONFIGS}/([^/]+)`, 'DeleteTaskPushNotificationConfig', ['taskId', 'id']),
  to('GET', '/extendedAgentCard', 'GetExtendedAgentCard'),
]

function to(
  verb: RestRoute['verb'],
  path: string,
  method: RestRoute['method'],
  ids: RestRoute['ids'] = [],
): RestRoute {
  return { verb, path: new RegExp(`^${path}$`), ids, method, takesBody: verb === 'POST' }
}
