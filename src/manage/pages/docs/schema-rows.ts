import { type JsonSchema, resolved, type Schemas } from '../../http/json-schema.ts'

/** A table row for one member of a body. */
interface SchemaRow {
  /** For example `agents[].name`. */
  readonly name: string
  readonly type: string
  readonly isRequired: boolean
  readonly about: string
}

/** Rows for all members of a schema, and for the members of these. */
export function schemaRows(schema: JsonSchema, schemas: Schemas, prefix = '', depth = 0): SchemaRow[] {
  const at = resolved(schema, schemas)
  if (depth > DEPTH_MAX) return []
  const choices = at.oneOf ?? at.anyOf ?? at.allOf
  // If a schema has properties, the choices are rules between them.
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

/** For example `string or null` or `list of string`. */
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
  // zod gives every integer the range of safe integers, which is not a limit of ours.
  const isOurs = maximum !== Number.MAX_SAFE_INTEGER && minimum !== Number.MIN_SAFE_INTEGER
  const given = fallback === undefined ? '' : `Default: \`${JSON.stringify(fallback)}\`.`
  return [description ?? '', isOurs ? range : '', given].filter((text) => text !== '').join(' ')
}

function distinct(rows: readonly SchemaRow[]): SchemaRow[] {
  return [...new Map(rows.map((row) => [row.name, row])).values()]
}

const DEPTH_MAX = 4
