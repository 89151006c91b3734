import { formatSSEEvent } from '@a2a-js/sdk'
import * as z from 'zod'
import { didYouMean } from '../../shared/did-you-mean.ts'
import { readBody } from '../http/body.ts'
import type { RequestContext } from '../http/router.ts'
import { Refusal } from '../http/refusal.ts'
import { A2AError, reportedError, rpcErrorOf } from './a2a-error.ts'
import { answered, checkVersion, streamed } from './answering.ts'
import { METHODS, type A2AMethod } from './methods.ts'
import type { A2AService } from './service.ts'

/**
 * The JSON-RPC binding (A2A 1.0 §9). A valid call is answered with 200, also if it
 * fails with an error in AS_CALL.
 */
export async function answerRpc(ctx: RequestContext, service: A2AService): Promise<void> {
  let id: RpcId = null
  try {
    if (ctx.method !== 'POST')
      throw new Refusal('method_not_allowed', 'calls must be sent with POST', { headers: { Allow: 'POST' } })
    const sent = await callIn(ctx)
    id = sent.id
    checkVersion(ctx)
    const method = methodNamed(sent.method)
    if (method.kind === 'stream') {
      const form = { value: (result: unknown) => event({ id, result }), error: errorEvent(id, ctx) }
      return await streamed(method, sent.params, ctx, service, form)
    }
    say(ctx, { id, result: await answered(method, sent.params, ctx, service) }, 200)
  } catch (error) {
    sayError(ctx, error, id)
  }
}

type RpcId = string | number | null

interface RpcCall {
  readonly id: RpcId
  readonly method: string
  readonly params: unknown
}

async function callIn(ctx: RequestContext): Promise<RpcCall> {
  const body = await bodyOf(ctx)
  if (Array.isArray(body))
    throw new A2AError('INVALID_REQUEST', 'batches are not supported: send one call per request')
  const read = rpcCall.safeParse(body)
  if (read.success)
    return { id: read.data.id ?? null, method: read.data.method, params: read.data.params ?? {} }
  const errors = read.error.issues.map(({ path, message }) => ({
    pointer: path.map((name) => `/${String(name)}`).join(''),
    detail: message,
  }))
  throw new A2AError('INVALID_REQUEST', 'invalid JSON-RPC 2.0 request', { errors })
}

async function bodyOf(ctx: RequestContext): Promise<unknown> {
  try {
    return await readBody(ctx, BODY_BYTES_MAX)
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'invalid_request') throw error
    throw new A2AError('PARSE_ERROR', error.message, { errors: error.errors })
  }
}

function methodNamed(name: string): A2AMethod {
  if (Object.hasOwn(METHODS, name)) return METHODS[name as keyof typeof METHODS]
  const near = didYouMean(name.slice(0, 100), Object.keys(METHODS))
  throw new A2AError('METHOD_NOT_FOUND', `unknown method${near}`)
}

function say(ctx: RequestContext, answer: object, status: number): void {
  ctx.body = { jsonrpc: '2.0', ...answer }
  ctx.set('Content-Type', 'application/json; charset=utf-8')
  ctx.status = status
}

function sayError(ctx: RequestContext, error: unknown, id: RpcId): void {
  const said = reportedError(error, ctx)
  ctx.set({ ...said.headers })
  say(ctx, { id, error: rpcErrorOf(said) }, AS_CALL.has(said.reason) ? 200 : said.status)
}

function errorEvent(id: RpcId, ctx: RequestContext): (error: unknown) => string {
  return (error) => event({ id, error: rpcErrorOf(reportedError(error, ctx)) })
}

function event(answer: object): string {
  return formatSSEEvent({ jsonrpc: '2.0', ...answer })
}

const rpcCall = z.object({
  jsonrpc: z.literal('2.0', 'takes "2.0"'),
  id: z.union([z.string().max(1_000), z.int()], 'must be a text, a whole number or null').nullish(),
  method: z.string('must be the name of a method').min(1, 'is empty'),
  params: z.record(z.string(), z.unknown(), 'must be an object').nullish(),
})

/** Errors that are reported with 200, because the request was a valid call. */
const AS_CALL: ReadonlySet<A2AError['reason']> = new Set([
  ...([
    'TASK_NOT_FOUND',
    'TASK_NOT_CANCELABLE',
    'UNSUPPORTED_OPERATION',
    'CONTENT_TYPE_NOT_SUPPORTED',
  ] as const),
  ...(['VERSION_NOT_SUPPORTED', 'METHOD_NOT_FOUND', 'INVALID_PARAMS'] as const),
])
/** Large enough for the items of a task. */
export const BODY_BYTES_MAX = 8 * 1_048_576
