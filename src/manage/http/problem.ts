import type Koa from 'koa'
import { Fault } from '../../shared/fault.ts'
import { pathIn } from './front/address.ts'
import { PROBLEMS, Refusal } from './refusal.ts'

/**
 * Answers with a problem (RFC 9457), whatever was thrown. Details of an internal error go only to the log.
 */
export function sayProblem(
  ctx: Koa.ParameterizedContext,
  error: unknown,
  failed: (error: Error) => void,
): void {
  const refusal = refusalFor(error)
  if (refusal.code === 'internal') failed(error instanceof Error ? error : new Error(String(error)))
  say(ctx, refusal)
}

function say(ctx: Koa.ParameterizedContext, refusal: Refusal): void {
  const state = ctx.state as { requestId?: string; problem?: string }
  state.problem = refusal.code
  ctx.status = refusal.status
  ctx.set({ ...refusal.headers })
  ctx.body = problemBody(refusal, pathIn(ctx.url), state.requestId ?? null)
  ctx.type = 'application/problem+json'
}

/** The problem document (RFC 9457). `instance` and `requestId` are left out if they are `null`. */
export function problemBody(
  { code, status, message, errors }: Refusal,
  instance: string | null,
  requestId: string | null,
): Readonly<Record<string, unknown>> {
  return {
    type: 'about:blank',
    title: PROBLEMS[code].title,
    status,
    detail: message,
    ...(instance === null ? {} : { instance }),
    code,
    ...(requestId === null ? {} : { request_id: requestId }),
    ...(errors.length === 0 ? {} : { errors }),
  }
}

/** The refusal that the client gets, whatever was thrown. */
export function refusalFor(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  if (error instanceof Fault && error.code === 'PASSWORDS_TOO_MANY')
    return new Refusal('unavailable', error.message, { headers: { 'Retry-After': '5' } })
  // A database failure may soon be over. The proxy keeps working meanwhile.
  if (error instanceof Fault && error.code.startsWith('STORE_'))
    return new Refusal('unavailable', STORE_REASONS.get(error.code) ?? 'the database is unavailable', {
      headers: { 'Retry-After': '5' },
    })
  return new Refusal('internal', 'see the log of Gatehouse for details')
}

/** Leaves out the database's own message: it may contain hosts and users. */
const STORE_REASONS: ReadonlyMap<string, string> = new Map([
  ['STORE_FULL', 'the database is out of disk space'],
  ['STORE_LOCKED', 'the database is locked by another program'],
  ['STORE_UNAVAILABLE', 'the database is unreachable'],
  ['STORE_DAMAGED', 'the database is damaged'],
  ['STORE_TOO_NEW', 'the database was written by a later version of Gatehouse'],
  ['STORE_TOO_OLD', 'the database is of an earlier version: run gatehouse migrate, or see the log'],
  ['STORE_URL_INVALID', 'the setting store.url is invalid'],
])
