import * as z from 'zod'
import {
  createDocument,
  type ZodOpenApiObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiResponsesObject,
} from 'zod-openapi'
import { PROBLEMS, type ProblemCode } from '../refusal.ts'
import { type AnyOperation, TAGS } from './operation.ts'

/** The OpenAPI 3.1 document of these operations. */
export function openApiDocument(operations: readonly AnyOperation[], publicUrl: string, version: string) {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {}
  for (const operation of operations) {
    paths[operation.path] = {
      ...paths[operation.path],
      [operation.method.toLowerCase()]: described(operation),
    }
  }
  return createDocument({
    openapi: '3.1.0',
    info: INFO,
    servers: [{ url: `${publicUrl}/v1` }],
    tags: [...TAGS],
    security: [{ bearer: [] }],
    paths: paths as NonNullable<ZodOpenApiObject['paths']>,
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'An API key or an access token.',
        },
      },
    },
    'x-gatehouse-version': version,
  } as ZodOpenApiObject)
}

function described(operation: AnyOperation): ZodOpenApiOperationObject {
  const { id, tag, summary, description, params, query, body, scopes } = operation
  const hasFields = (fields: z.ZodObject) => Object.keys(fields.shape).length > 0
  return {
    operationId: id,
    tags: [tag],
    summary,
    description: [description, `Scope: ${scopes.map((scope) => `\`${scope}\``).join(' or ')}.`]
      .filter((text) => text !== '')
      .join('\n\n'),
    requestParams: {
      ...(hasFields(params) ? { path: params } : {}),
      ...(hasFields(query) ? { query } : {}),
      ...(operation.isIdempotent ? { header: IDEMPOTENCY } : {}),
    },
    ...(body === null
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    responses: responsesOf(operation),
  }
}

function responsesOf(operation: AnyOperation): ZodOpenApiResponsesObject {
  const { status, answer } = operation
  const good =
    answer === null
      ? { description: 'Done.' }
      : { description: 'As asked for.', content: { 'application/json': { schema: answer } } }
  const responses: Record<string, object> = { [status]: good }
  for (const code of problemsOf(operation)) {
    const { status: bad, title } = PROBLEMS[code]
    const before = responses[bad] as { description: string } | undefined
    responses[bad] = {
      description:
        before === undefined ? `\`${code}\`: ${title}.` : `${before.description} \`${code}\`: ${title}.`,
      content: { 'application/problem+json': { schema: problem } },
    }
  }
  return responses as ZodOpenApiResponsesObject
}

/** All that it may be refused with. */
function problemsOf({
  method,
  path,
  query,
  body,
  isIdempotent,
  problems,
}: AnyOperation): ReadonlySet<ProblemCode> {
  const codes = new Set<ProblemCode>([
    'missing_token',
    'invalid_token',
    'expired_token',
    'insufficient_scope',
    'rate_limited',
    'internal',
    'unavailable',
  ])
  if (path.includes('{')) codes.add('not_found')
  if (Object.keys(query.shape).length > 0 || body !== null || method === 'GET') codes.add('invalid_request')
  if (body !== null) codes.add('too_large').add('unsupported_media_type')
  if (isIdempotent) codes.add('idempotency_conflict')
  for (const code of problems) codes.add(code)
  return codes
}

const IDEMPOTENCY = z.object({
  'Idempotency-Key': z
    .string()
    .min(1)
    .max(255)
    .optional()
    .meta({ description: 'The same key and body within 24 h: the same answer.' }),
})

const problem = z
  .strictObject({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    instance: z.string(),
    code: z
      .enum(Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]])
      .meta({ description: 'Stable, for programs.' }),
    request_id: z.string().optional(),
    errors: z.array(z.strictObject({ pointer: z.string(), detail: z.string() })).optional(),
  })
  .meta({ id: 'Problem', description: 'RFC 9457.' })

const INFO = {
  title: 'Gatehouse',
  version: '1.0.0',
  description:
    'Which AI agent is at the door: detection, the directory of agents, signatures, tasks, statistics.',
  license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
}
