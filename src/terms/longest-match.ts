import { asBytes } from '../policy/glob.ts'
import type { PathPattern } from './path-pattern.ts'
import { overlaps, type PathRules } from './path-rules.ts'

/** A pattern of robots.txt: it matches the beginning of a target, or with `$` at its end all of it. */
export interface LongestRule<Value> {
  readonly pattern: string
  readonly value: Value
}

/**
 * The same rules for readers that take the longest pattern that matches, and of two that are equally long the one that
 * `wins`. A rule that would be too short gets more stars, which match the same. `instead` replaces the value of a rule
 * that cannot be made long enough.
 */
export function byLongestMatch<Value>(
  rules: PathRules<Value>,
  wins: (value: Value, other: Value) => boolean,
  instead: (value: Value) => Value = (value) => value,
): readonly LongestRule<Value>[] {
  const made: (LongestRule<Value> & { readonly of: PathPattern })[] = []
  for (const { pattern: of, value } of [...rules].reverse()) {
    const least = Math.max(
      0,
      ...made
        .filter((later) => later.value !== value && overlaps(of, later.of))
        .map((later) => later.pattern.length + (wins(value, later.value) ? 0 : 1)),
    )
    const pattern = longer(written(of), least)
    const isLong = pattern.length >= least
    made.push({ pattern, value: isLong ? value : instead(value), of })
  }
  return made.reverse().map(({ pattern, value }) => ({ pattern, value }))
}

/** The same pattern with stars that match nothing more, as far as it can have them. */
export function longer(pattern: string, least: number): string {
  const missing = least - pattern.length
  if (missing <= 0) return pattern
  if (pattern.includes('*')) return pattern.replace('*', '*'.repeat(missing + 1))
  return pattern.endsWith('$') ? pattern : pattern + '*'.repeat(missing)
}

/** Bytes that a target never has as they are become escapes. */
export function written(pattern: PathPattern): string {
  const encoded = asBytes(pattern).replaceAll(ESCAPED, (byte) => {
    return `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
  })
  if (!encoded.endsWith('*')) return `${encoded}$`
  const prefix = encoded.slice(0, -1)
  // A `$` at the end would mean the end of the target.
  return prefix.endsWith('$') ? encoded : prefix
}

const ESCAPED = /[^\x21-\x7e]|["<>^`{}]/g
