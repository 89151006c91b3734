import * as z from 'zod'
import {
  createDocument,
  type ZodOpenApiObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiResponsesObject,
} from 'zod-openapi'
import { PROBLEMS, type ProblemCode } from '../http/refusal.ts'
import { exampleOf, type JsonSchema, type Schemas } from '../http/json-schema.ts'
import { type AnyOperation, TAGS } from '../http/operation.ts'
import { headersNamed, headersOf, problemExamples, reference } from '../http/response-headers.ts'
import type { ApiVersion } from '../http/version.ts'

/** The part of the document that our code reads. */
export interface OpenApiDocument {
  readonly info: { readonly title: string; readonly description: string; readonly version: string }
  readonly servers: readonly { readonly url: string }[]
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>
  readonly components: {
    readonly schemas: Schemas
    readonly responses: Readonly<Record<string, DocumentedResponse>>
  }
}

export interface DocumentedOperation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description: string
  readonly parameters?: readonly DocumentedParameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> }
  readonly responses: Readonly<Record<string, DocumentedResponse | Reference>>
}

interface Reference {
  readonly $ref: string
}

export interface DocumentedParameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required?: boolean
  readonly description?: string
  readonly schema: JsonSchema
  example?: unknown
}

interface DocumentedResponse {
  readonly description: string
  readonly content?: Readonly<Record<string, Content>>
}

export interface Content {
  readonly schema: JsonSchema
  example?: unknown
}

/** The OpenAPI 3.1 document of one API version. */
export function openApiDocument(version: ApiVersion, publicUrl: string): OpenApiDocument {
  const { operations, prefix, isBeta } = version
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {}
  for (const operation of operations) {
    paths[operation.path] = {
      ...paths[operation.path],
      [operation.method.toLowerCase()]: described(operation, version),
    }
  }
  const used = new Set(operations.map(({ tag }) => tag))
  const headers = new Set(operations.flatMap((operation) => headersIn(operation, version)))
  const codes = new Set(operations.flatMap((operation) => [...problemsOf(operation)]))
  const document = createDocument({
    openapi: '3.1.0',
    info: isBeta ? BETA_INFO : INFO,
    servers: [{ url: `${publicUrl}${prefix}` }],
    tags: TAGS.filter(({ name }) => used.has(name)),
    security: [{ bearer: [] }],
    paths: paths as NonNullable<ZodOpenApiObject['paths']>,
    components: {
      responses: problemResponses(version),
      headers: headersNamed(headers, version),
      examples: problemExamples(codes, version),
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'An API key or an access token.',
        },
      },
    },
  } as ZodOpenApiObject) as unknown as OpenApiDocument
  addExamples(document, operations)
  return document
}

function described(operation: AnyOperation, version: ApiVersion): ZodOpenApiOperationObject {
  const { id, tag, summary, description, params, query, body, scopes, reach } = operation
  const forAll = reach === 'organisation' ? ' Only for callers with access to all apps.' : ''
  const hasFields = (fields: z.ZodObject) => Object.keys(fields.shape).length > 0
  const header = {
    ...(operation.isIdempotent ? IDEMPOTENCY : {}),
    ...(isConditional(operation) ? CONDITION : {}),
    ...(operation.problems.includes('precondition_failed') ? MATCH : {}),
    ...(operation.stream?.hasIds === true ? LAST_EVENT : {}),
  }
  return {
    operationId: id,
    tags: [tag],
    summary,
    description: [description, `Scope: ${scopes.map((scope) => `\`${scope}\``).join(' or ')}.${forAll}`]
      .filter((text) => text !== '')
      .join('\n\n'),
    requestParams: {
      ...(hasFields(params) ? { path: params } : {}),
      ...(hasFields(query) ? { query } : {}),
      ...(Object.keys(header).length > 0 ? { header: z.object(header) } : {}),
    },
    ...(body === null
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    responses: responsesOf(operation, version),
  }
}

function responsesOf(operation: AnyOperation, version: ApiVersion): ZodOpenApiResponsesObject {
  const { status, answer, files } = operation
  const responses: Record<string, object> = {
    [status]: {
      description: answer === null && files === null ? 'Done.' : 'The result.',
      headers: headersOf(operation, status, version),
      ...(answer === null && files === null ? {} : { content: contentOf(operation) }),
    },
  }
  if (isConditional(operation))
    responses[304] = {
      description: 'Not modified: `If-None-Match` matches.',
      headers: headersOf(operation, 304, version),
    }
  for (const [bad, codes] of byStatus(problemsOf(operation)))
    responses[bad] = reference('responses', codes.join('.'))
  return responses as ZodOpenApiResponsesObject
}

function contentOf({ answer, stream, files }: AnyOperation) {
  if (files !== null)
    return Object.fromEntries(
      Object.entries(files).map(([type, { description, example }]) => [
        type,
        { schema: { type: 'string' as const, description }, example },
      ]),
    )
  const json = { 'application/json': { schema: answer! } }
  if (stream === null) return json
  const { description, example } = stream
  return { ...json, 'text/event-stream': { schema: { type: 'string' as const, description }, example } }
}

/** Each set of problems that an operation may answer with, under the name that operations refer to. */
function problemResponses(version: ApiVersion): Readonly<Record<string, object>> {
  const responses = version.operations.flatMap((operation) =>
    [...byStatus(problemsOf(operation))].map(([status, codes]) => [
      codes.join('.'),
      {
        description: codes.map((code) => `\`${code}\`: ${PROBLEMS[code].title}.`).join(' '),
        headers: headersOf(operation, status, version),
        content: {
          'application/problem+json': {
            schema: problem,
            examples: Object.fromEntries(codes.map((code) => [code, reference('examples', code)])),
          },
        },
      },
    ]),
  )
  return Object.fromEntries(responses) as Record<string, object>
}

function headersIn(operation: AnyOperation, version: ApiVersion): string[] {
  const statuses = [operation.status, 304, ...byStatus(problemsOf(operation)).keys()]
  return statuses
    .filter((status) => status !== 304 || isConditional(operation))
    .flatMap((status) => Object.keys(headersOf(operation, status, version)))
}

/** Whether the answer has an entity tag. */
function isConditional({ method, files }: AnyOperation): boolean {
  return method === 'GET' && files === null
}

function byStatus(codes: ReadonlySet<ProblemCode>): ReadonlyMap<number, readonly ProblemCode[]> {
  return Map.groupBy(codes, (code) => PROBLEMS[code].status)
}

/** All problems that the operation may answer with. */
export function problemsOf({
  path,
  body,
  isIdempotent,
  stream,
  reach,
  problems,
}: AnyOperation): ReadonlySet<ProblemCode> {
  const codes = new Set<ProblemCode>(ANYWHERE)
  if (path.includes('{')) codes.add('not_found')
  if (body !== null) codes.add('request_timeout')
  if (isIdempotent) codes.add('idempotency_conflict').add('idempotency_in_progress')
  if (stream !== null) codes.add('not_acceptable')
  if (reach === 'organisation') codes.add('needs_all_apps')
  for (const code of problems) codes.add(code)
  return codes
}

/** `undefined`: the document does not describe this answer. */
export function responseIn(
  { components }: OpenApiDocument,
  { responses }: DocumentedOperation,
  status: number,
): DocumentedResponse | undefined {
  const response = responses[status]
  return response !== undefined && '$ref' in response
    ? components.responses[response.$ref.split('/').at(-1)!]
    : response
}

/** Adds examples. An operation's own example takes precedence over a generated one. */
function addExamples(document: OpenApiDocument, operations: readonly AnyOperation[]): void {
  const { schemas } = document.components
  for (const { path, method, status, examples } of operations) {
    const documented = document.paths[path]![method.toLowerCase()]!
    const request = documented.requestBody?.content['application/json']
    if (request !== undefined) request.example = examples.body ?? exampleOf(request.schema, schemas)
    const answer = responseIn(document, documented, status)?.content?.['application/json']
    if (answer !== undefined) answer.example = examples.answer ?? exampleOf(answer.schema, schemas)
    for (const parameter of documented.parameters ?? []) {
      const shown = parameter.in === 'query' ? examples.query?.[parameter.name] : undefined
      if (shown !== undefined) parameter.example = shown
      if (parameter.in === 'path') parameter.example ??= exampleOf(parameter.schema, schemas)
    }
  }
}

const ANYWHERE: readonly ProblemCode[] = [
  'invalid_request',
  'missing_token',
  'invalid_token',
  'expired_token',
  'use_dpop_nonce',
  'insufficient_scope',
  'too_large',
  'uri_too_long',
  'unsupported_media_type',
  'expectation_failed',
  'rate_limited',
  'header_too_large',
  'internal',
  'unavailable',
]

const IDEMPOTENCY = {
  'Idempotency-Key': z.string().min(1).max(255).optional().meta({
    description:
      'Repeating the same request with the same key within 24 h returns the first answer, with `Idempotency-Replayed`. A different request with the same key: 409.',
    example: '0b8e2d6c-3f0a-4f0e-9f57-6f4f4b1d2c11',
  }),
}
const CONDITION = {
  'If-None-Match': z.string().optional().meta({
    description: 'The ETag you have. If it is still current, the answer is 304.',
    example: '"5Zk1yT0e8cYpGm3wq2xVtA"',
  }),
}
const LAST_EVENT = {
  'Last-Event-ID': z.string().optional().meta({
    description: 'The last event that you received. The stream continues after it.',
    example: '4711',
  }),
}
const MATCH = {
  'If-Match': z.string().optional().meta({
    description: 'The ETag of the version you changed. If a later version exists, the answer is 412.',
    example: '"7"',
  }),
}

const problem = z
  .strictObject({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    instance: z.string().optional().meta({ description: 'The requested path.' }),
    code: z
      .enum(Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]])
      .meta({ description: 'Stable, for programs.' }),
    request_id: z.string().optional(),
    errors: z
      .array(z.strictObject({ pointer: z.string(), detail: z.string() }))
      .optional()
      .meta({ description: 'Errors in the body (with JSON Pointers into it) or in the query.' }),
  })
  .meta({ id: 'Problem', description: 'RFC 9457.' })

const INFO = {
  title: 'Gatehouse',
  version: '1.0.0',
  description: 'Identifies AI agents: detection, the directory of agents, signatures, tasks and statistics.',
  license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
}
const BETA_INFO = {
  ...INFO,
  version: '2.0.0-beta',
  description: `${INFO.description} This version is in beta: it may still change, and every answer says so in \`X-API-Stability\`. Its lists are paged by cursor, so items added or removed in the meantime do not shift the others. Only an item that changes its own place in the order can appear twice or not at all.`,
}
