import type { Effort } from './effort.ts'

/**
 * Patterns of paths in which `*` matches any run of characters, including an empty one. A pattern matches whole
 * paths, and every path begins with a slash.
 */
export type PathPattern = string

export const EVERY_PATH: PathPattern = '/*'

/** A condition's pattern as patterns that begin with a slash. */
export function anchored(pattern: string): readonly PathPattern[] {
  const plain = squeezed(pattern)
  if (plain.startsWith('/')) return [plain]
  const rest = plain.slice(1)
  // The star may be empty: `*/admin` also matches `/admin`.
  return rest.startsWith('/') ? [rest, `/*${rest}`] : [`/*${rest}`]
}

/**
 * The paths that both match, as patterns. `null`: there are too many to list, which patterns of more than a few stars
 * can cause, or it takes too long.
 */
export function intersection(a: PathPattern, b: PathPattern, effort: Effort): readonly PathPattern[] | null {
  if (isCovered(a, b)) return [a]
  if (isCovered(b, a)) return [b]
  if (areApart(a, b)) return []
  if (a.length + b.length > LENGTH_MAX || !effort.spend(a.length * b.length)) return null
  return new Intersection(a, b).all()
}

/**
 * Whether every path of `inner` is one of `outer`. May miss cases of many stars; never claims one falsely. Hardly any two
 * patterns begin alike, so most answers take one comparison.
 */
export function isCovered(inner: PathPattern, outer: PathPattern): boolean {
  const star = outer.indexOf('*')
  if (star === -1) return inner === outer
  if (inner.length < star) return false
  for (let at = 0; at < star; at++) if (inner.charCodeAt(at) !== outer.charCodeAt(at)) return false
  return star === outer.length - 1 || covers(outer, star, inner)
}

/** A star of the outer pattern swallows anything of the inner one, its stars included. */
function covers(outer: string, star: number, inner: string): boolean {
  const parts = outer.slice(star + 1).split('*')
  const last = parts.at(-1)!
  const end = inner.length - last.length
  let at = star
  if (end < at || !inner.endsWith(last)) return false
  for (const part of parts.slice(0, -1)) {
    const found = inner.indexOf(part, at)
    if (found === -1 || found + part.length > end) return false
    at = found + part.length
  }
  return true
}

/** Whether the patterns differ before the first star of either, so that no path matches both. */
export function areApart(a: PathPattern, b: PathPattern): boolean {
  for (let at = 0; at < a.length && at < b.length; at++) {
    const [x, y] = [a.charCodeAt(at), b.charCodeAt(at)]
    if (x === STAR || y === STAR) return false
    if (x !== y) return true
  }
  return false
}

/** Walks both patterns at once. The result of each pair of places is made once. */
class Intersection {
  readonly #a: string
  readonly #b: string
  readonly #known = new Map<number, ReadonlySet<string> | null>()

  constructor(a: string, b: string) {
    this.#a = a
    this.#b = b
  }

  all(): readonly PathPattern[] | null {
    const found = this.#from(0, 0)
    if (found === null) return null
    const patterns = [...new Set([...found].map(squeezed))]
    return patterns.filter((each) => !patterns.some((other) => other !== each && isCovered(each, other)))
  }

  #from(i: number, j: number): ReadonlySet<string> | null {
    const key = i * (this.#b.length + 1) + j
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const made = this.#made(i, j)
    this.#known.set(key, made)
    return made
  }

  #made(i: number, j: number): ReadonlySet<string> | null {
    const [a, b] = [this.#a, this.#b]
    if (i === a.length && j === b.length) return new Set([''])
    const made = new Set<string>()
    const add = (head: string, rest: ReadonlySet<string> | null) => {
      if (rest === null) return false
      for (const each of rest) made.add(squeezed(head + each))
      return made.size <= PATTERNS_MAX
    }
    const [x, y] = [a[i], b[j]]
    if (x === '*' && y === '*') {
      // One of the stars ends first, and the other goes on.
      return add('*', this.#from(i + 1, j)) && add('*', this.#from(i, j + 1)) ? made : null
    }
    if (x === '*') {
      if (!add('', this.#from(i + 1, j))) return null
      return y === undefined || add(y, this.#from(i, j + 1)) ? made : null
    }
    if (y === '*') {
      if (!add('', this.#from(i, j + 1))) return null
      return x === undefined || add(x, this.#from(i + 1, j)) ? made : null
    }
    if (x === undefined || x !== y) return made
    return add(x, this.#from(i + 1, j + 1)) ? made : null
  }
}

function squeezed(pattern: string): string {
  return pattern.replaceAll(/\*{2,}/g, '*')
}

const PATTERNS_MAX = 16
const LENGTH_MAX = 2_000
const STAR = 0x2a
