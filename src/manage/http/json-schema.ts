/** The part of JSON Schema 2020-12 that our documents use. */
export interface JsonSchema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly format?: string
  readonly pattern?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly default?: unknown
  readonly example?: unknown
  readonly examples?: readonly unknown[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: JsonSchema | boolean
  readonly items?: JsonSchema
  readonly minItems?: number
  readonly minimum?: number
  readonly minLength?: number
  readonly maximum?: number
  readonly maxLength?: number
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
  readonly allOf?: readonly JsonSchema[]
}

export type Schemas = Readonly<Record<string, JsonSchema>>

/** Resolves `$ref`. */
export function resolved(schema: JsonSchema, schemas: Schemas): JsonSchema {
  if (schema.$ref === undefined) return schema
  const { $ref, ...beside } = schema
  return { ...resolved(schemas[$ref.split('/').at(-1)!] ?? {}, schemas), ...beside }
}

/** Returns an example value: the schema's own example if it has one, otherwise the simplest value. */
export function exampleOf(given: JsonSchema, schemas: Schemas, depth = 0): unknown {
  const schema = resolved(given, schemas)
  if (schema.example !== undefined) return schema.example
  if (schema.examples !== undefined) return schema.examples[0]
  if (schema.const !== undefined) return schema.const
  if (schema.default !== undefined && schema.default !== null) return schema.default
  if (schema.enum !== undefined) return schema.enum[0]
  // If a schema has properties, its oneOf, anyOf and allOf are rules between them. An operation's own example
  // follows these rules.
  if (schema.properties !== undefined) return simplest(schema, schemas, depth)
  const choice = (schema.oneOf ?? schema.anyOf)?.find(({ type }) => type !== 'null')
  if (choice !== undefined) return exampleOf(choice, schemas, depth)
  if (schema.allOf !== undefined)
    return Object.assign({}, ...schema.allOf.map((part) => exampleOf(part, schemas, depth)))
  return simplest(schema, schemas, depth)
}

function simplest(schema: JsonSchema, schemas: Schemas, depth: number): unknown {
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? [])
  switch (types.find((type) => type !== 'null')) {
    case 'object':
      return objectOf(schema, schemas, depth)
    case 'array':
      return depth > DEPTH_MAX ? [] : [exampleOf(schema.items ?? {}, schemas, depth + 1)]
    case 'integer':
    case 'number':
      return Math.max(schema.minimum ?? 0, Math.min(1, schema.maximum ?? 1))
    case 'boolean':
      return true
    case 'string':
      return FORMATS.get(schema.format ?? '') ?? 'text'.padEnd(schema.minLength ?? 0, '.')
    default:
      return null
  }
}

function objectOf(
  { properties = {}, additionalProperties, required = [] }: JsonSchema,
  schemas: Schemas,
  depth: number,
): Record<string, unknown> {
  // Leave out deep optional members: the example would be longer than what it explains.
  const shown = Object.entries(properties).filter(([name]) => depth <= DEPTH_MAX || required.includes(name))
  const object = Object.fromEntries(
    shown.map(([name, member]) => [name, exampleOf(member, schemas, depth + 1)]),
  )
  if (shown.length > 0 || typeof additionalProperties !== 'object') return object
  return { name: exampleOf(additionalProperties, schemas, depth + 1) }
}

const DEPTH_MAX = 5
const FORMATS: ReadonlyMap<string, string> = new Map([
  ['date-time', '2026-11-21T09:30:00.000Z'],
  ['uri', 'https://app.example/hooks'],
  ['email', 'user@app.example'],
  ['ipv4', '192.0.2.1'],
  ['ipv6', '2001:db8::1'],
])
