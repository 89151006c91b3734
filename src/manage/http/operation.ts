import * as z from 'zod'
import type { Actor } from './audit.ts'
import type { NamedNeeds } from './access/needed-scopes.ts'
import type { Principal, Scope } from './access/principal.ts'
import type { Management } from '../management.ts'
import type { ProblemCode } from './refusal.ts'

/** One thing that can be asked of the API: routes, validation, types and the OpenAPI document are made from these. */
export interface Operation<
  Params extends Fields,
  Query extends Fields,
  Body extends z.ZodType,
  Result,
  Subject,
> {
  /** `listAgents`: never changed once released. */
  readonly id: string
  readonly method: Method
  /** Behind the version: `/agents/{agent_id}`. */
  readonly path: `/${string}`
  readonly tag: Tag
  readonly summary: string
  /** Markdown. */
  readonly description: string
  /** One of these is enough; `admin` always is. */
  readonly scopes: readonly Scope[]
  /** More scopes, where they depend on the body; `null`: none do. `sent` may be anything: nothing has checked it. */
  readonly moreScopes: ((sent: unknown) => NamedNeeds | null) | null
  readonly params: Params
  readonly query: Query
  /** `null`: it takes none. */
  readonly body: Body | null
  /** `204`: there is no body. */
  readonly status: 200 | 201 | 204
  readonly answer: z.ZodType<Result> | null
  /** Beside those that any operation may answer with. */
  readonly problems: readonly ProblemCode[]
  /** `Idempotency-Key` is honoured: for what makes a record. */
  readonly isIdempotent: boolean
  readonly bodyBytesMax: number
  /** For the document, where what is made of the schemas says too little. */
  readonly examples: {
    readonly query?: Readonly<Record<string, string>>
    readonly body?: z.input<Body>
    readonly answer?: Result
  }
  /**
   * What the path names, looked up before query and body are: who asks for what is not there is told that first. `null`
   * is 404.
   */
  find(asked: Asked<z.output<Params>>, management: Management): Promise<Subject | null> | Subject | null
  run(
    call: Call<z.output<Params>, z.output<Query>, z.output<Body>, Subject>,
    management: Management,
  ): Promise<Answer<Result>> | Answer<Result>
  /** The same as Server-Sent Events; `null`: there is no such thing. */
  readonly stream: Stream<z.output<Params>, z.output<Query>, z.output<Body>, Subject> | null
}

/** Of an operation that can be listened to. */
export interface Stream<Params, Query, Body, Subject> {
  /** Whether it can go on behind `Last-Event-ID`. */
  readonly hasIds: boolean
  /** For the document. */
  readonly description: string
  readonly example: string
  /** What rejects is no stream yet. What it resolves to says events, each as a text, until `over`. */
  begin(
    call: Call<Params, Query, Body, Subject>,
    management: Management,
  ): Promise<(over: AbortSignal) => AsyncGenerator<string, void, undefined>>
}

export type Fields = z.ZodObject
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
export type Tag = (typeof TAGS)[number]['name']
// biome-ignore lint/suspicious/noExplicitAny: an operation's types are its own; the table holds all of them
export type AnyOperation = Operation<any, any, any, any, any>

/** What is known before query and body are. */
export interface Asked<Params> {
  readonly params: Params
  readonly principal: Principal
}

export interface Call<Params, Query, Body, Subject> extends Asked<Params> {
  readonly query: Query
  readonly body: Body
  readonly subject: Subject
  readonly requestId: string
  /** The client's. */
  readonly address: string
  /** The path and the query as asked for, for links. */
  readonly target: string
  /** The entity tag in `If-Match`. */
  readonly ifMatch: string | null
  /** What `Last-Event-ID` has. */
  readonly lastEventId: string | null
}

export interface Answer<Result> {
  readonly body: Result
  readonly headers?: Readonly<Record<string, string>>
}

/** For the audit log. */
export function actorOf({ principal, address, requestId }: Call<unknown, unknown, unknown, unknown>): Actor {
  return { id: principal.id, address, requestId }
}

/** What most operations leave out. */
type Optional =
  | 'description'
  | 'moreScopes'
  | 'params'
  | 'query'
  | 'body'
  | 'answer'
  | 'problems'
  | 'isIdempotent'
  | 'bodyBytesMax'
  | 'examples'
  | 'find'
  | 'status'
  | 'stream'

export function operation<
  Params extends Fields = typeof NOTHING,
  Query extends Fields = typeof NOTHING,
  Body extends z.ZodType = z.ZodNull,
  Result = null,
  Subject = true,
>(
  given: Omit<Operation<Params, Query, Body, Result, Subject>, Optional> &
    Partial<Pick<Operation<Params, Query, Body, Result, Subject>, Optional>>,
): Operation<Params, Query, Body, Result, Subject> {
  return {
    description: '',
    moreScopes: null,
    params: NOTHING as unknown as Params,
    query: NOTHING as unknown as Query,
    body: null,
    status: 200,
    answer: null,
    problems: [],
    isIdempotent: false,
    bodyBytesMax: BODY_BYTES_MAX,
    examples: {},
    find: () => true as Subject,
    stream: null,
    ...given,
  }
}

export const NOTHING = z.strictObject({})
const BODY_BYTES_MAX = 1_048_576
export const TAGS = [
  { name: 'Detection', description: 'Who sent this request?' },
  { name: 'Agents', description: 'The agents that are known.' },
  { name: 'Signatures', description: 'The fingerprints that are known, and new ones.' },
  { name: 'Tasks', description: 'Work on many items at once.' },
  { name: 'Tools', description: 'The same for programs that use tools.' },
  { name: 'Events', description: 'What has happened, and what happens.' },
  { name: 'Webhooks', description: 'Being told.' },
  { name: 'Statistics', description: 'What was seen.' },
  { name: 'Administration', description: 'Keys, settings, policy.' },
] as const
