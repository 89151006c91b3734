import fc from 'fast-check'
import { exampleOf, type JsonSchema, resolved, type Schemas } from '../../src/manage/http/json-schema.ts'
import type { ApiVersion } from '../../src/manage/http/version.ts'
import type {
  Content,
  DocumentedOperation,
  DocumentedParameter,
  OpenApiDocument,
} from '../../src/manage/api/openapi.ts'

/** A request as it is sent, made of what the document says, or of what it does not. */
export interface FuzzedRequest {
  readonly operationId: string
  readonly method: string
  /** With its query. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer | null
  readonly token: 'admin' | 'read' | 'write' | 'none' | 'wrong'
}

/** What answers had in them. */
export interface Remembered {
  readonly ids: readonly string[]
  readonly cursors: readonly string[]
}

/** Of every operation: requests that are right, nearly right, and hostile. */
export function requestsFor(
  document: OpenApiDocument,
  { prefix }: ApiVersion,
  remembered: Remembered,
): fc.Arbitrary<FuzzedRequest> {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) =>
      requestOf(document, method.toUpperCase(), `${prefix}${path}`, operation, remembered),
    ),
  )
  return fc.oneof(...operations)
}

function requestOf(
  { components: { schemas } }: OpenApiDocument,
  method: string,
  path: string,
  operation: DocumentedOperation,
  { ids, cursors }: Remembered,
): fc.Arbitrary<FuzzedRequest> {
  const parameters = operation.parameters ?? []
  const request = operation.requestBody?.content['application/json']
  return fc
    .record({
      params: fc.record(
        Object.fromEntries(inPlace(parameters, 'path').map(({ name }) => [name, paramOf(ids)])),
      ),
      query: queryOf(inPlace(parameters, 'query'), schemas, cursors),
      body: request === undefined ? NO_BODY : bodyOf(request, schemas),
      headers: HEADERS,
      token: TOKEN,
    })
    .map(({ params, query, body, headers, token }) => ({
      operationId: operation.operationId,
      method,
      target: `${path.replaceAll(/\{(\w+)\}/g, (_, name: string) => params[name]!)}${query}`,
      headers: body === null ? headers : { 'content-type': 'application/json', ...headers },
      ...{ body, token },
    }))
}

/** A lone surrogate has no UTF-8. */
function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed())
}

/** Mostly the id of something, so that more than 404 is tried. */
function paramOf(ids: readonly string[]): fc.Arbitrary<string> {
  const known = fc.nat().map((index) => (ids.length === 0 ? 'none' : ids[index % ids.length]!))
  const hostile = fc.constantFrom(
    ...['%00', '%ff', '%zz', '..%2f..', '__proto__', '%2F', "'%20or%201=1--", '*'],
  )
  const text = fc.string({ minLength: 1, maxLength: 40 }).map((given) => encoded(given))
  return fc.oneof(
    { weight: 6, arbitrary: known },
    { weight: 1, arbitrary: hostile },
    { weight: 1, arbitrary: text },
  )
}

function queryOf(
  parameters: readonly DocumentedParameter[],
  schemas: Schemas,
  cursors: readonly string[],
): fc.Arbitrary<string> {
  const right = parameters.map(({ name, schema, example }) =>
    fc.option(
      fc
        .oneof(
          { weight: 4, arbitrary: likely(schema, schemas, 0) },
          { weight: 1, arbitrary: HOSTILE_TEXT },
          { weight: example === undefined ? 0 : 4, arbitrary: fc.constant(example) },
          { weight: name === 'cursor' ? 20 : 0, arbitrary: cursorOf(cursors) },
        )
        .map((value) => `${name}=${encoded(typeof value === 'string' ? value : JSON.stringify(value))}`),
      { nil: null, freq: 2 },
    ),
  )
  const wrong = fc.option(
    fc.constantFrom(
      ...['page=1&page=2', 'limti=5', '%', '=', '&&', 'page=-1', 'page=1e9', '__proto__=1', 'x=%ff'],
    ),
    { nil: null, freq: 1 },
  )
  return fc
    .tuple(fc.tuple(...right), fc.integer({ min: 0, max: 9 }), wrong)
    .map(([given, isWrong, extra]) => {
      const parts = [...given, isWrong === 0 ? extra : null].filter((part) => part !== null)
      return parts.length === 0 ? '' : `?${parts.join('&')}`
    })
}

/** One that was given, for this list or another, or nearly. */
function cursorOf(cursors: readonly string[]): fc.Arbitrary<string> {
  const given = fc.nat().map((index) => (cursors.length === 0 ? NO_CURSOR : cursors[index % cursors.length]!))
  const spoilt = fc.tuple(given, fc.nat(), HOSTILE).map(([cursor, at, hostile]) => {
    const content: unknown[] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    return textOf(content.with(at % content.length, hostile))
  })
  return fc.oneof({ weight: 4, arbitrary: given }, { weight: 2, arbitrary: spoilt })
}

function textOf(content: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(content)).toString('base64url')
}

function bodyOf({ schema, example: shown }: Content, schemas: Schemas): fc.Arbitrary<string | Buffer | null> {
  const right = likely(schema, schemas, 0)
  const example = fc.constant(shown)
  const text = (values: fc.Arbitrary<unknown>) => values.map((value) => JSON.stringify(value))
  return fc.oneof(
    { weight: 6, arbitrary: text(right) },
    { weight: 2, arbitrary: text(example) },
    { weight: 4, arbitrary: text(fc.tuple(fc.oneof(right, example), fc.nat(), HOSTILE).map(spoiled)) },
    { weight: 1, arbitrary: text(fc.jsonValue({ maxDepth: 3 })) },
    {
      weight: 1,
      arbitrary: fc.tuple(text(right), fc.nat()).map(([given, at]) => given.slice(0, at % given.length)),
    },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)) },
    {
      weight: 1,
      arbitrary: fc.constantFrom('{"__proto__":{"x":1}}', '['.repeat(5000), '"\\ud800"', '1e999', ' '),
    },
    { weight: 1, arbitrary: fc.constant(null) },
  )
}

/** One place in it has something else, is gone, or is new. */
function spoiled([value, at, hostile]: [unknown, number, unknown]): unknown {
  if (Array.isArray(value) && value.length > 0) {
    const index = at % value.length
    return value.with(index, spoiled([value[index], Math.floor(at / value.length), hostile]))
  }
  if (typeof value !== 'object' || value === null) return hostile
  const names = Object.keys(value)
  const index = at % (names.length + 1)
  const name = names[index]
  const rest = Math.floor(at / (names.length + 1))
  if (name === undefined) return { ...value, [rest % 2 === 0 ? 'unknown' : 'constructor']: hostile }
  const members = Object.entries(value)
  if (rest % 4 === 0) return Object.fromEntries(members.filter(([member]) => member !== name))
  return Object.fromEntries(
    members.map(([member, inner]) => [member, member === name ? spoiled([inner, rest, hostile]) : inner]),
  )
}

/** Values that the schema takes, as far as a generator can tell. */
function likely(given: JsonSchema, schemas: Schemas, depth: number): fc.Arbitrary<unknown> {
  const schema = resolved(given, schemas)
  const shown = fc.constant(exampleOf(schema, schemas))
  if (depth > DEPTH_MAX) return shown
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if (schema.const !== undefined) return fc.constant(schema.const)
  const choices = schema.oneOf ?? schema.anyOf
  if (choices !== undefined) return fc.oneof(...choices.map((choice) => likely(choice, schemas, depth)))
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? ['null'])
  return fc.oneof(
    { weight: 5, arbitrary: fc.oneof(...types.map((type) => typed(type, schema, schemas, depth))) },
    { weight: 2, arbitrary: shown },
  )
}

function typed(type: string, schema: JsonSchema, schemas: Schemas, depth: number): fc.Arbitrary<unknown> {
  switch (type) {
    case 'object':
      return objectOf(schema, schemas, depth)
    case 'array':
      return fc.array(likely(schema.items ?? {}, schemas, depth + 1), {
        minLength: schema.minItems ?? 0,
        maxLength: (schema.minItems ?? 0) + 4,
      })
    case 'integer':
      return fc.integer({ min: schema.minimum ?? -10, max: Math.min(schema.maximum ?? 1_000, 2 ** 31 - 1) })
    case 'number':
      return fc.double({ min: schema.minimum ?? -1, max: schema.maximum ?? 1_000, noNaN: true })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    default:
      return schema.format === 'date-time'
        ? fc
            .date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true })
            .map((date) => date.toISOString())
        : fc.oneof(
            fc.string({ minLength: schema.minLength ?? 0, maxLength: Math.min(schema.maxLength ?? 60, 60) }),
            HOSTILE_TEXT,
          )
  }
}

function objectOf(schema: JsonSchema, schemas: Schemas, depth: number): fc.Arbitrary<unknown> {
  const { properties = {}, required = [], additionalProperties } = schema
  const members = Object.fromEntries(
    Object.entries(properties).map(([name, member]) => [name, likely(member, schemas, depth + 1)]),
  )
  const object = fc.record(members, { requiredKeys: [...required] })
  if (typeof additionalProperties !== 'object') return object
  return fc.dictionary(
    fc.string({ minLength: 1, maxLength: 20 }),
    likely(additionalProperties, schemas, depth + 1),
    {
      maxKeys: 4,
    },
  )
}

function inPlace(parameters: readonly DocumentedParameter[], place: string): DocumentedParameter[] {
  return parameters.filter((parameter) => parameter.in === place)
}

const HOSTILE_TEXT = fc.constantFrom(
  ...[
    '',
    ' ',
    '\u0000',
    '\ud800',
    "'; drop table api_keys; --",
    '%s%n',
    '../../etc/passwd',
    'x'.repeat(3000),
  ],
  ...[
    '<script>',
    '{{7*7}}',
    '\u202e',
    '-1',
    '1e400',
    'NaN',
    'true',
    'null',
    '__proto__',
    '\r\nX-Bad: 1',
    '☃',
  ],
)
const HOSTILE: fc.Arbitrary<unknown> = fc.oneof(
  HOSTILE_TEXT,
  fc.constantFrom<unknown>(null, -1, 0, 1e308, 0.5, true, [], {}, [[[]]], { a: { b: 1 } }, 2 ** 53),
  fc.jsonValue({ maxDepth: 1 }),
)
const NO_BODY = fc.oneof(
  { weight: 20, arbitrary: fc.constant(null) },
  { weight: 1, arbitrary: fc.constantFrom('{}', '{"x":1}', '[') },
)
const HEADERS: fc.Arbitrary<Record<string, string>> = fc.oneof(
  { weight: 10, arbitrary: fc.constant({}) },
  {
    weight: 3,
    arbitrary: fc.constantFrom<Record<string, string>>(
      { 'idempotency-key': 'one' },
      { 'idempotency-key': 'two' },
      { 'idempotency-key': ' ' },
      { 'if-none-match': '*' },
      { 'if-match': '"1"' },
      { 'if-match': '*' },
      { 'accept-encoding': 'br;q=x, gzip' },
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/json; charset=utf-16' },
      { 'content-encoding': 'gzip' },
      { 'x-request-id': '\t' },
      { accept: 'text/html' },
      { accept: 'text/event-stream' },
      { accept: 'text/event-stream', 'last-event-id': '0' },
      { accept: 'text/event-stream', 'last-event-id': 'x' },
    ),
  },
)
const TOKEN: fc.Arbitrary<FuzzedRequest['token']> = fc.oneof(
  { weight: 12, arbitrary: fc.constant<FuzzedRequest['token']>('admin') },
  { weight: 4, arbitrary: fc.constantFrom<FuzzedRequest['token'][]>('read', 'write', 'none', 'wrong') },
)
const NO_CURSOR = textOf(['unknown', 1])
const DEPTH_MAX = 5
