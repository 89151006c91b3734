import { addressOf } from './address.ts'
import { OPERATIONS, type Operations } from './operations.ts'
import { type ApiProblem, problemOf, unreachable } from './problem.ts'
import { authorization, signedOut } from './session.ts'

export type OperationId = keyof Operations
export type OperationAnswer<Id extends OperationId> = Operations[Id]['answer']

/** The parameters of an operation; required ones cannot be left out. */
export type OperationInput<Id extends OperationId> = Part<'path', Operations[Id]['path']> &
  Part<'query', Operations[Id]['query']> &
  Part<'body', Operations[Id]['body']>

type Part<Name extends string, Value> = Value extends undefined
  ? unknown
  : Record<never, never> extends Value
    ? { readonly [Each in Name]?: Value }
    : { readonly [Each in Name]: Value }

export interface AskOptions {
  readonly signal?: AbortSignal
  /** The entity tag of the version to change: fails if another client has changed it meanwhile. */
  readonly ifMatch?: string
}

/** An answer with the entity tag of the resource. */
export interface Tagged<Value> {
  readonly value: Value
  readonly tag: string | null
}

/** Calls the API. Throws an ApiProblem. After a 401, the user has to sign in again. */
export async function ask<Id extends OperationId>(
  id: Id,
  asked: OperationInput<Id>,
  options: AskOptions = {},
): Promise<OperationAnswer<Id>> {
  return (await askTagged(id, asked, options)).value
}

export async function askTagged<Id extends OperationId>(
  id: Id,
  asked: OperationInput<Id>,
  { signal, ifMatch }: AskOptions = {},
): Promise<Tagged<OperationAnswer<Id>>> {
  const [method, template] = OPERATIONS[id]
  const { path, query, body } = asked as { path?: object; query?: object; body?: unknown }
  const response = await send(addressOf(template, { ...path }, { ...query }), {
    method,
    headers: {
      Accept: 'application/json',
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...(ifMatch !== undefined && { 'If-Match': ifMatch }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal !== undefined && { signal }),
  })
  const value = response.status === 204 ? undefined : await response.json()
  return { value: value as OperationAnswer<Id>, tag: response.headers.get('ETag') }
}

/** Sends a request with authorization. Resolves only if the answer is a success. */
export async function send(address: string, init: RequestInit): Promise<Response> {
  const given = await authorization()
  const headers = { ...(init.headers as Record<string, string>), ...(given && { Authorization: given }) }
  let response: Response
  try {
    response = await fetch(address, { ...init, headers, credentials: 'omit', cache: 'no-cache' })
  } catch (error) {
    if (init.signal?.aborted) throw error
    throw unreachable()
  }
  if (response.ok) return response
  const problem: ApiProblem = problemOf(response.status, await response.json().catch(() => null))
  if (response.status === 401) signedOut(problem)
  throw problem
}
