/** As it is written: nothing of it is checked yet. */
export type WrittenRule = Readonly<Record<string, unknown>>
type WrittenPolicy = Readonly<Record<string, unknown>>

/** A rule and where it stands in the policy. */
export interface PlacedRule {
  readonly layer: string
  /** In its layer. */
  readonly at: number
  /** `null`: not an object. */
  readonly rule: WrittenRule | null
}

/** In the order in which they are tried. A policy has `rules`, or `first` and `last`. */
export function rulesIn(policy: WrittenPolicy): readonly PlacedRule[] {
  return layersOf(policy).flatMap((layer) =>
    listOf(policy, layer).map((rule, at) => ({ layer, at, rule: isObject(rule) ? rule : null })),
  )
}

/** `at`, `to`: places among all rules. The rule takes the place of the other one. */
export function movedTo<Policy extends WrittenPolicy>(policy: Policy, at: number, to: number): Policy {
  const rules = rulesIn(policy)
  const [from, target] = [rules[at], rules[to]]
  if (from === undefined || target === undefined || at === to) return policy
  return inserted(without(policy, at), target.layer, target.at, listOf(policy, from.layer)[from.at])
}

/** One place up (-1) or down (1), at the edge of its layer into the next one. `null`: it is already the first or the last. */
export function stepped<Policy extends WrittenPolicy>(
  policy: Policy,
  at: number,
  by: -1 | 1,
): { readonly policy: Policy; readonly at: number } | null {
  const rules = rulesIn(policy)
  const rule = rules[at]
  if (rule === undefined) return null
  if (rules[at + by]?.layer === rule.layer) return { policy: movedTo(policy, at, at + by), at: at + by }
  const layers = layersOf(policy)
  const next = layers[layers.indexOf(rule.layer) + by]
  if (next === undefined) return null
  const place = by === 1 ? 0 : listOf(policy, next).length
  // Among all rules, it stays where it is.
  return { policy: inserted(without(policy, at), next, place, listOf(policy, rule.layer)[rule.at]), at }
}

export function replaced<Policy extends WrittenPolicy>(
  policy: Policy,
  at: number,
  rule: WrittenRule,
): Policy {
  const place = rulesIn(policy)[at]
  if (place === undefined) return policy
  return { ...policy, [place.layer]: listOf(policy, place.layer).with(place.at, rule) }
}

export function without<Policy extends WrittenPolicy>(policy: Policy, at: number): Policy {
  const place = rulesIn(policy)[at]
  if (place === undefined) return policy
  return { ...policy, [place.layer]: listOf(policy, place.layer).toSpliced(place.at, 1) }
}

/** As the last rule. */
export function added<Policy extends WrittenPolicy>(policy: Policy, rule: WrittenRule): Policy {
  const layer = layersOf(policy).at(-1)!
  return inserted(policy, layer, listOf(policy, layer).length, rule)
}

/** Where the problems of a rule are, as a JSON Pointer into the policy. */
export function pointerTo({ layer, at }: PlacedRule): string {
  return `/${layer}/${at}`
}

export function nameOf(rule: WrittenRule | null): string {
  return typeof rule?.['name'] === 'string' ? rule['name'] : ''
}

export function isObject(value: unknown): value is WrittenRule {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function inserted<Policy extends WrittenPolicy>(
  policy: Policy,
  layer: string,
  at: number,
  rule: unknown,
): Policy {
  return { ...policy, [layer]: listOf(policy, layer).toSpliced(at, 0, rule) }
}

function layersOf(policy: WrittenPolicy): readonly string[] {
  return 'first' in policy || 'last' in policy ? ['first', 'last'] : ['rules']
}

function listOf(policy: WrittenPolicy, layer: string): readonly unknown[] {
  const list = policy[layer]
  return Array.isArray(list) ? list : []
}
