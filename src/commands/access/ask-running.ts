import * as z from 'zod'
import { Fault } from '../../shared/fault.ts'
import type { Arguments } from '../../terminal/command.ts'
import { eventsIn } from '../event-stream.ts'
import type { Io } from '../../terminal/io.ts'
import { keyGiven, urlGiven } from '../../runtime/running.ts'
import { visible } from '../../terminal/table.ts'

/** Calls the API of the running gateway. Returns the answer, or throws a Fault. `body`: `null` for a read. */
export function asked<Schema extends z.ZodType>(
  given: Arguments,
  io: Io,
  schema: Schema,
  path: string,
  body: unknown,
): Promise<z.output<Schema>> {
  return called(given, io, schema, { method: body === null ? 'GET' : 'POST', path, body })
}

/** The same with any method. An answer without a body is `null`. */
export async function called<Schema extends z.ZodType>(
  given: Arguments,
  io: Io,
  schema: Schema,
  call: ApiCall,
): Promise<z.output<Schema>> {
  return (await answered(given, io, schema, call)).data
}

/** The same with the ETag of the answer. */
export async function answered<Schema extends z.ZodType>(
  given: Arguments,
  io: Io,
  schema: Schema,
  { method, path, body, ifMatch }: ApiCall,
): Promise<{ readonly data: z.output<Schema>; readonly etag: string | null }> {
  const url = addressGiven(given, io, path)
  const headers = {
    Authorization: `Bearer ${keyGiven(given, io)}`,
    'Content-Type': 'application/json',
    ...((ifMatch ?? null) === null ? {} : { 'If-Match': ifMatch! }),
  }
  const sent = { headers, method, ...(body === null ? {} : { body: JSON.stringify(body) }) }
  let response: Response
  let said: unknown
  try {
    response = await fetch(url, { ...sent, redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS) })
    said = response.status === NO_CONTENT ? null : await response.json()
  } catch (error) {
    throw new Fault('NOT_ANSWERED', `${url} does not answer: ${reasonOf(error)}`, { cause: error })
  }
  const { ok, status } = response
  const problem = problemAnswer.safeParse(said)
  if (!ok && problem.success) throw refused(problem.data)
  const answer = schema.safeParse(said)
  if (!ok || !answer.success)
    throw new Fault('NOT_GATEHOUSE', `${url} answers with ${status}, and not as Gatehouse does`)
  return { data: answer.data, etag: response.headers.get('etag') }
}

interface ApiCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  /** `null`: none. */
  readonly body: unknown
  /** The ETag that what is changed must still have. */
  readonly ifMatch?: string | null
}

/** Yields the `data` of each event from now on; ends with the stream, or with `stop`. */
export async function* heard(
  given: Arguments,
  io: Io,
  path: string,
  stop: AbortSignal,
): AsyncGenerator<unknown, void, undefined> {
  const url = addressGiven(given, io, path)
  const headers = { Authorization: `Bearer ${keyGiven(given, io)}`, Accept: 'text/event-stream' }
  try {
    const response = await fetch(url, { headers, redirect: 'error', signal: stop })
    if (response.status !== 200 || response.body === null) {
      const problem = problemAnswer.safeParse(await response.json().catch(() => null))
      if (problem.success) throw refused(problem.data)
      throw new Fault('NOT_GATEHOUSE', `${url} answers with ${response.status}, and not as Gatehouse does`)
    }
    for await (const data of eventsIn(response.body, EVENT_LENGTH_MAX)) yield JSON.parse(data)
  } catch (error) {
    if (stop.aborted) return
    if (error instanceof Fault) throw error
    throw new Fault('NOT_ANSWERED', `${url} does not answer: ${reasonOf(error)}`, { cause: error })
  }
}

function addressGiven(given: Arguments, io: Io, path: string): string {
  return `${urlGiven(given, io).href.replace(/\/$/, '')}${path}`
}

function refused({ code, detail, errors }: z.output<typeof problemAnswer>): Fault {
  const places = errors.map((each) => `  ${each.pointer}: ${each.detail}`)
  return new Fault('REFUSED', [`${detail} (${code})`, ...places].map(visible).join('\n'))
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error
  return cause instanceof Error ? cause.message : message
}

const problemAnswer = z.object({
  code: z.string(),
  detail: z.string(),
  errors: z.array(z.object({ pointer: z.string(), detail: z.string() })).default([]),
})
const NO_CONTENT = 204
/** The request timeout of the management port. */
const TIMEOUT_MS = 60_000
const EVENT_LENGTH_MAX = 1_048_576
