export interface ShapeProblem {
  /** A JSON Pointer (RFC 6901). */
  readonly pointer: string
  readonly detail: string
}

/**
 * Finds valid JSON with an abusive shape: too deep, or with a `__proto__` member. `null` if the shape is
 * fine.
 */
export function shapeProblem(value: unknown): ShapeProblem | null {
  return isShapely(value, 1) ? null : problemIn(value)
}

/** The fast check, which nearly all values pass. */
function isShapely(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (depth > DEPTH_MAX) return false
  if (Array.isArray(value)) return value.every((item) => isShapely(item, depth + 1))
  for (const name in value)
    if (name === '__proto__' || !isShapely((value as Record<string, unknown>)[name], depth + 1)) return false
  return true
}

function problemIn(value: unknown): ShapeProblem | null {
  const waiting: { readonly value: unknown; readonly pointer: string; readonly depth: number }[] = [
    { value, pointer: '', depth: 1 },
  ]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { value: at, pointer, depth } = next
    if (typeof at !== 'object' || at === null) continue
    if (depth > DEPTH_MAX) return { pointer: '', detail: `is nested deeper than ${DEPTH_MAX} levels` }
    if (Array.isArray(at)) {
      for (const [index, item] of at.entries())
        if (typeof item === 'object')
          waiting.push({ value: item, pointer: `${pointer}/${index}`, depth: depth + 1 })
      continue
    }
    for (const [name, member] of Object.entries(at)) {
      // If it were copied by assignment, it would set the prototype of the copy.
      if (name === '__proto__') return { pointer: `${pointer}/__proto__`, detail: 'is unknown' }
      if (typeof member === 'object')
        waiting.push({
          value: member,
          pointer: `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`,
          depth: depth + 1,
        })
    }
  }
  return null
}

/** No accepted body has more than ten levels. */
const DEPTH_MAX = 64
