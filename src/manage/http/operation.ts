import * as z from 'zod'
import type { Actor } from './audit.ts'
import type { NamedNeeds } from './access/needed-scopes.ts'
import type { Principal, Scope } from './access/principal.ts'
import type { Reach } from './access/reach.ts'
import type { ProblemCode } from './refusal.ts'

/**
 * One operation of the API. Routes, validation, types and the OpenAPI document are made from operations.
 * `Context`: the parts of the management plane that operations use.
 */
interface Operation<
  Params extends Fields,
  Query extends Fields,
  Body extends z.ZodType,
  Result,
  Subject,
  Context,
> {
  /** For example `listAgents`. Never changes once released. */
  readonly id: string
  readonly method: Method
  /** The path after the version prefix: `/agents/{agent_id}`. */
  readonly path: `/${string}`
  readonly tag: Tag
  readonly summary: string
  /** Markdown. */
  readonly description: string
  /** The principal needs one of these scopes. `admin` is always enough. */
  readonly scopes: readonly Scope[]
  /** What a principal that is limited to some apps gets. */
  readonly reach: Reach
  /**
   * Additional scopes that depend on the body; `null`: none do. `sent` may be anything: it is not validated
   * yet.
   */
  readonly moreScopes: ((sent: unknown) => NamedNeeds | null) | null
  readonly params: Params
  readonly query: Query
  /** `null`: the operation takes no body. */
  readonly body: Body | null
  /** `204`: the answer has no body. */
  readonly status: 200 | 201 | 204
  readonly answer: z.ZodType<Result> | null
  /** Problem codes in addition to those that every operation may answer with. */
  readonly problems: readonly ProblemCode[]
  /** Whether `Idempotency-Key` is honoured. For operations that create a record. */
  readonly isIdempotent: boolean
  readonly bodyBytesMax: number
  /** For the OpenAPI document, where the examples made from the schemas say too little. */
  readonly examples: {
    readonly query?: Readonly<Record<string, string>>
    readonly body?: z.input<Body>
    readonly answer?: Result
  }
  /**
   * Looks up the resource in the path. It runs before query and body are read, so that a missing resource is
   * reported first. `null` is answered with 404.
   */
  readonly find: (
    addressed: Addressed<z.output<Params>>,
    management: Context,
  ) => Promise<Subject | null> | Subject | null
  readonly run: (
    call: Call<z.output<Params>, z.output<Query>, z.output<Body>, Subject>,
    management: Context,
  ) => Promise<Answer<Result>> | Answer<Result>
  /** The same answer as Server-Sent Events; `null`: not offered. */
  readonly stream: Stream<z.output<Params>, z.output<Query>, z.output<Body>, Subject, Context> | null
  /** The answer is a FileAnswer of one of these media types; `null`: it is JSON. Shown in the OpenAPI document. */
  readonly files: Readonly<Record<string, FileExample>> | null
}

interface FileExample {
  readonly description: string
  readonly example: string
}

/** A file that is sent while it is made. */
export interface FileAnswer {
  /** With its extension. */
  readonly name: string
  readonly type: string
  /** The parts of the file. Throws if `over` aborts before the end, so that the client does not take it for whole. */
  parts(over: AbortSignal): AsyncGenerator<string | Uint8Array, void, undefined>
}

/** The streaming form of an operation. */
interface Stream<Params, Query, Body, Subject, Context> {
  /** Whether the stream can resume after `Last-Event-ID`. */
  readonly hasIds: boolean
  /** Shown in the OpenAPI document. */
  readonly description: string
  readonly example: string
  /**
   * If it rejects, the answer is a problem and no stream begins. The generator yields each event as text
   * until `over` aborts.
   */
  readonly begin: (
    call: Call<Params, Query, Body, Subject>,
    management: Context,
  ) => Promise<(over: AbortSignal) => AsyncGenerator<string, void, undefined>>
}

type Fields = z.ZodObject
type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
type Tag = (typeof TAGS)[number]['name']
/** Without `Context`, the operation can be read and not run. */
// biome-ignore lint/suspicious/noExplicitAny: an operation's types are its own; the table holds all of them
export type AnyOperation<Context = never> = Operation<any, any, any, any, any, Context>

/** What is known before query and body are read. */
export interface Addressed<Params> {
  readonly params: Params
  readonly principal: Principal
}

export interface Call<Params, Query, Body, Subject> extends Addressed<Params> {
  readonly query: Query
  readonly body: Body
  readonly subject: Subject
  readonly requestId: string
  /** The client's address. */
  readonly address: string
  /** Path and query of the request, for links. */
  readonly target: string
  /** The entity tag in `If-Match`. */
  readonly ifMatch: string | null
  /** The value of `Last-Event-ID`. */
  readonly lastEventId: string | null
}

export interface Answer<Result> {
  readonly body: Result
  readonly headers?: Readonly<Record<string, string>>
}

/** The author of the call, for the audit log. */
export function actorOf({ principal, address, requestId }: Call<unknown, unknown, unknown, unknown>): Actor {
  return { id: principal.id, address, requestId }
}

/** Members that most operations leave out. */
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
  | 'files'

/** Fills in what most operations leave out. */
export const operationsOf =
  <Context>() =>
  <
    Params extends Fields = typeof NOTHING,
    Query extends Fields = typeof NOTHING,
    Body extends z.ZodType = z.ZodNull,
    Result = null,
    Subject = true,
  >(
    given: Omit<Operation<Params, Query, Body, Result, Subject, Context>, Optional> &
      Partial<Pick<Operation<Params, Query, Body, Result, Subject, Context>, Optional>>,
  ): Operation<Params, Query, Body, Result, Subject, Context> => ({
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
    files: null,
    ...given,
  })

export const NOTHING = z.strictObject({})
const BODY_BYTES_MAX = 1_048_576
export const TAGS = [
  { name: 'Detection', description: 'Classify requests.' },
  { name: 'Agents', description: 'The known agents.' },
  { name: 'Signatures', description: 'The known fingerprints, and submitting new ones.' },
  { name: 'Tasks', description: 'Asynchronous work on many items.' },
  { name: 'Tools', description: 'The same operations as tools for AI agents.' },
  { name: 'Events', description: 'Past and live events.' },
  { name: 'Webhooks', description: 'Notifications of events.' },
  { name: 'Statistics', description: 'Statistics about the traffic.' },
  { name: 'Payments', description: 'The ledger of what agents pay.' },
  { name: 'Apps', description: 'The apps behind the proxies.' },
  { name: 'Administration', description: 'Keys, settings, policy.' },
] as const
