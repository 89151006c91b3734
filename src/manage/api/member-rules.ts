// Rules between the members of a body, as JSON Schema 2020-12 for the OpenAPI document. Code refuses invalid
// bodies, because its messages are made for people. test/manage/member-rules.test.ts checks that rules and
// code agree.

type JsonSchemaRule = Readonly<Record<string, unknown>>

/** All of these rules, in the form that they have beside the properties of an object. */
export function rules(...all: readonly JsonSchemaRule[]): JsonSchemaRule {
  return all.length === 1 ? all[0]! : { allOf: all }
}

/** Exactly one of these members. */
export function exactlyOne(...names: readonly string[]): JsonSchemaRule {
  return { oneOf: names.map(given) }
}

export function given(name: string): JsonSchemaRule {
  return is(name, {})
}

/** The member is present and its value matches the schema. */
export function is(name: string, schema: JsonSchemaRule): JsonSchemaRule {
  return { required: [name], properties: { [name]: schema } }
}

/** The member is left out, or its value matches the schema. */
export function mayBe(name: string, schema: JsonSchemaRule): JsonSchemaRule {
  return { properties: { [name]: schema } }
}

/** The member is a list that contains this item. */
export function has(name: string, item: string): JsonSchemaRule {
  return is(name, { contains: { const: item } })
}

export function when(
  condition: JsonSchemaRule,
  rule: JsonSchemaRule,
  otherwise: JsonSchemaRule | null = null,
): JsonSchemaRule {
  const held = { anyOf: [{ not: condition }, rule] }
  return otherwise === null ? held : rules(held, { anyOf: [condition, otherwise] })
}
