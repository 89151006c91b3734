import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Schemas } from '../../src/manage/http/json-schema.ts'
import { type DocumentedOperation, openApiDocument } from '../../src/manage/api/openapi.ts'
import { V1 } from '../../src/manage/api/operations.ts'

type Schema = Schemas[string]

/** What the dashboard knows of the API, made of its document: `npm run openapi` writes it. */
export function operationsText(): string {
  const { paths, components } = openApiDocument(V1, 'https://gate.example')
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
  const table = operations.map(
    ({ method, path, operation }) => `  ${operation.operationId}: ['${method}', '${path}'],`,
  )
  const types = operations.map(({ operation }) => typesOf(operation))
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) => `export type ${name} = ${typeOf(schema)}\n`,
  )
  return [
    '// Made of the API by `npm run openapi`: see test/dashboard/operations.ts.\n',
    `export const OPERATIONS = {\n${table.join('\n')}\n} as const\n`,
    `export interface Operations {\n${types.join('\n')}\n}\n`,
    ...schemas,
  ].join('\n')
}

function typesOf({ operationId, parameters = [], requestBody, responses }: DocumentedOperation): string {
  const those = (place: string) =>
    parameters
      .filter((parameter) => parameter.in === place)
      .map(({ name, required, schema }) => `${keyOf(name)}${required ? '' : '?'}: ${typeOf(schema)}`)
  const [, answer] = Object.entries(responses).find(([status]) => status.startsWith('2'))!
  const body = requestBody?.content['application/json']?.schema
  const said = (answer as { content?: Record<string, { schema: Schema }> }).content?.['application/json']
  return [
    `  ${operationId}: {`,
    `    path: { ${those('path').join('; ')} }`,
    `    query: { ${those('query').join('; ')} }`,
    `    body: ${body === undefined ? 'undefined' : typeOf(body)}`,
    `    answer: ${said === undefined ? 'undefined' : typeOf(said.schema)}`,
    '  }',
  ].join('\n')
}

function typeOf(schema: Schema): string {
  const { $ref, anyOf, enum: values, const: value, type } = schema
  if ($ref !== undefined) return $ref.split('/').at(-1)!
  if (anyOf !== undefined && schema.properties === undefined)
    return [...new Set(anyOf.map(typeOf))].join(' | ')
  if (values !== undefined) return values.map((each) => JSON.stringify(each)).join(' | ')
  if (value !== undefined) return JSON.stringify(value)
  if (typeof type === 'object') return type.map((each) => typeOf({ ...schema, type: each })).join(' | ')
  if (type === 'array') return `readonly (${schema.items === undefined ? 'unknown' : typeOf(schema.items)})[]`
  if (type === 'object') return objectOf(schema)
  return PLAIN[type ?? ''] ?? 'unknown'
}

function objectOf({ properties, required = [], additionalProperties }: Schema): string {
  const others = typeof additionalProperties === 'object' ? typeOf(additionalProperties) : 'unknown'
  if (properties === undefined) return `Readonly<Record<string, ${others}>>`
  const members = Object.entries(properties).map(
    ([name, each]) => `readonly ${keyOf(name)}${required.includes(name) ? '' : '?'}: ${typeOf(each)}`,
  )
  return `{ ${members.join('; ')} }`
}

function keyOf(name: string): string {
  return /^[a-z_]\w*$/i.test(name) ? name : `'${name}'`
}

const PLAIN: Readonly<Record<string, string>> = {
  ...{ string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null' },
}

export const OPERATIONS_FILE = new URL('../../src/dashboard/api/operations.ts', import.meta.url)

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(OPERATIONS_FILE, operationsText())
