import { addressOf } from './address.ts'
import { OPERATIONS, type Operations } from './operations.ts'
import { type ApiProblem, problemOf, unreachable } from './problem.ts'
import { authorization, signedOut } from './session.ts'

export type OperationId = keyof Operations
export type Answer<Id extends OperationId> = Operations[Id]['answer']

/** What an operation is asked with: what it must have cannot be left out. */
export type Asked<Id extends OperationId> = Part<'path', Operations[Id]['path']> &
  Part<'query', Operations[Id]['query']> &
  Part<'body', Operations[Id]['body']>

type Part<Name extends string, Value> = Value extends undefined
  ? unknown
  : Record<never, never> extends Value
    ? { readonly [Each in Name]?: Value }
    : { readonly [Each in Name]: Value }

export interface AskOptions {
  readonly signal?: AbortSignal
  /** The entity tag of what is to be changed: somebody may have been faster. */
  readonly ifMatch?: string
}

/** An answer, and the entity tag of what was read. */
export interface Tagged<Value> {
  readonly value: Value
  readonly tag: string | null
}

/** Asks the API. Throws an ApiProblem; whoever was refused as a stranger has to sign in again. */
export async function ask<Id extends OperationId>(
  id: Id,
  asked: Asked<Id>,
  options: AskOptions = {},
): Promise<Answer<Id>> {
  return (await askTagged(id, asked, options)).value
}

export async function askTagged<Id extends OperationId>(
  id: Id,
  asked: Asked<Id>,
  { signal, ifMatch }: AskOptions = {},
): Promise<Tagged<Answer<Id>>> {
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
  return { value: value as Answer<Id>, tag: response.headers.get('ETag') }
}

/** With who asks; the answer is a good one. */
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
