// Rules between the members of a body, in JSON Schema 2020-12, for the OpenAPI document. What refuses a body is code, which
// has the words for people: test/manage/member-rules.test.ts holds both against each other.

type Rule = Readonly<Record<string, unknown>>

/** All of these rules, as they stand beside the properties of an object. */
export function rules(...all: readonly Rule[]): Rule {
  return all.length === 1 ? all[0]! : { allOf: all }
}

/** One of these members, and not two of them. */
export function exactlyOne(...names: readonly string[]): Rule {
  return { oneOf: names.map(given) }
}

export function given(name: string): Rule {
  return is(name, {})
}

/** A member that has a value like this. */
export function is(name: string, schema: Rule): Rule {
  return { required: [name], properties: { [name]: schema } }
}

/** A member that has a value like this, or is left out. */
export function mayBe(name: string, schema: Rule): Rule {
  return { properties: { [name]: schema } }
}

/** A list with this item in it. */
export function has(name: string, item: string): Rule {
  return is(name, { contains: { const: item } })
}

export function when(condition: Rule, rule: Rule, otherwise: Rule | null = null): Rule {
  const held = { anyOf: [{ not: condition }, rule] }
  return otherwise === null ? held : rules(held, { anyOf: [condition, otherwise] })
}
