import { Effort } from './effort.ts'
import { areApart, EVERY_PATH, intersection, isCovered, type PathPattern } from './path-pattern.ts'

/** Tried in order: the first pattern that matches a target has its value. The last one matches every target. */
export type PathRules<Value> = readonly PathRule<Value>[]

export interface PathRule<Value> {
  readonly pattern: PathPattern
  readonly value: Value
}

export function everywhere<Value>(value: Value): PathRules<Value> {
  return [{ pattern: EVERY_PATH, value }]
}

/**
 * For each target, what `combine` makes of the values of both. Where two patterns have too many paths in common to list,
 * or the effort is over, `instead` stands for all paths of the first.
 */
export function combined<A, B, Value>(
  a: PathRules<A>,
  b: PathRules<B>,
  combine: (a: A, b: B) => Value,
  instead: (a: A) => Value,
  effort: Effort,
): PathRules<Value> {
  const rules: PathRule<Value>[] = []
  for (const outer of a) {
    const inside = b.map((inner) => ({ inner, patterns: intersection(outer.pattern, inner.pattern, effort) }))
    if (inside.some(({ patterns }) => patterns === null) || !effort.spend(b.length >> 4)) {
      rules.push({ pattern: outer.pattern, value: instead(outer.value) })
      continue
    }
    for (const { inner, patterns } of inside)
      for (const pattern of patterns!) rules.push({ pattern, value: combine(outer.value, inner.value) })
  }
  return tidied(rules, effort)
}

export function mapped<A, B>(rules: PathRules<A>, map: (value: A) => B): PathRules<B> {
  return tidied(
    rules.map(({ pattern, value }) => ({ pattern, value: map(value) })),
    new Effort(),
  )
}

/** The same without rules that never decide, or that say what the later ones say anyway, as far as there is time. */
export function tidied<Value>(rules: PathRules<Value>, effort: Effort): PathRules<Value> {
  const kept: PathRule<Value>[] = []
  for (const rule of rules) {
    if (effort.spend(kept.length >> 6) && kept.some(({ pattern }) => isCovered(rule.pattern, pattern)))
      continue
    kept.push(rule)
    if (rule.pattern === EVERY_PATH) break
  }
  for (let at = kept.length - 2; at >= 0; at--)
    if (effort.spend((kept.length - at) >> 6) && isRepeated(kept, at)) kept.splice(at, 1)
  return kept
}

/** Whether each path of a rule gets its value from the rules after it, too. */
function isRepeated<Value>(rules: PathRules<Value>, at: number): boolean {
  const { pattern, value } = rules[at]!
  for (const later of rules.slice(at + 1)) {
    if (isCovered(pattern, later.pattern)) return later.value === value
    if (later.value !== value && overlaps(pattern, later.pattern)) return false
  }
  return false
}

/** Whether a path may match both. */
export function overlaps(a: PathPattern, b: PathPattern): boolean {
  return !areApart(a, b)
}

export function valueFor<Value>(rules: PathRules<Value>, matches: (pattern: PathPattern) => boolean): Value {
  return (rules.find(({ pattern }) => matches(pattern)) ?? rules.at(-1)!).value
}
