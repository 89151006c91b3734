import { type JsonSchema, resolved, type Schemas } from '../../http/json-schema.ts'

/** One member of a body, for a table. */
export interface SchemaRow {
  /** `agents[].name` */
  readonly name: string
  readonly type: string
  readonly isRequired: boolean
  readonly about: string
}

/** All members of what has this schema, those of its members too. */
export function schemaRows(schema: JsonSchema, schemas: Schemas, prefix = '', depth = 0): SchemaRow[] {
  const at = resolved(schema, schemas)
  if (depth > DEPTH_MAX) return []
  const choices = at.oneOf ?? at.anyOf ?? at.allOf
  // Beside properties they are rules between these.
  if (choices !== undefined && at.properties === undefined)
    return distinct(choices.flatMap((each) => schemaRows(each, schemas, prefix, depth)))
  if (at.items !== undefined) return schemaRows(at.items, schemas, `${prefix}[]`, depth)
  const members = Object.entries(at.properties ?? {}).flatMap(([name, member]) => {
    const path = prefix === '' ? name : `${prefix}.${name}`
    const row = {
      name: path,
      type: typeOf(member, schemas),
      isRequired: at.required?.includes(name) ?? false,
      about: aboutOf(resolved(member, schemas)),
    }
    return [row, ...schemaRows(member, schemas, path, depth + 1)]
  })
  return typeof at.additionalProperties === 'object'
    ? [...members, ...schemaRows(at.additionalProperties, schemas, `${prefix}.*`, depth + 1)]
    : members
}

/** `string or null`, `list of string`. */
export function typeOf(schema: JsonSchema, schemas: Schemas): string {
  const at = resolved(schema, schemas)
  const choices = at.oneOf ?? at.anyOf
  if (choices !== undefined && at.properties === undefined)
    return [...new Set(choices.map((each) => typeOf(each, schemas)))].join(' or ')
  if (at.const !== undefined) return JSON.stringify(at.const)
  if (at.enum !== undefined) return at.enum.map((value) => String(value)).join(', ')
  const types = typeof at.type === 'string' ? [at.type] : (at.type ?? ['anything'])
  return types
    .map((type) => (type === 'array' ? `list of ${typeOf(at.items ?? {}, schemas)}` : type))
    .map((type) => (type === 'string' && at.format !== undefined ? at.format : type))
    .join(' or ')
}

export function aboutOf({ description, default: fallback, minimum, maximum }: JsonSchema): string {
  const range = minimum === undefined || maximum === undefined ? '' : `From ${minimum} to ${maximum}.`
  // What zod says of any whole number is no limit of ours.
  const isOurs = maximum !== Number.MAX_SAFE_INTEGER && minimum !== Number.MIN_SAFE_INTEGER
  const given = fallback === undefined ? '' : `Default: \`${JSON.stringify(fallback)}\`.`
  return [description ?? '', isOurs ? range : '', given].filter((text) => text !== '').join(' ')
}

function distinct(rows: readonly SchemaRow[]): SchemaRow[] {
  return [...new Map(rows.map((row) => [row.name, row])).values()]
}

const DEPTH_MAX = 4
