import { byLongestMatch, type LongestRule } from './longest-match.ts'
import { mapped, type PathRules, valueFor } from './path-rules.ts'
import { isOpenFor, type PublishedTerms, type Use, USES, type Uses } from './published-terms.ts'

/**
 * A statement of preference (draft-ietf-aipref-vocab): `train-ai=n, search=y`. The vocabulary has no word for answers
 * to a user.
 */
export function preferencesOf(uses: Uses): string {
  return PREFERENCES.map(([use, label]) => `${label}=${isOpenFor(uses, use) ? 'y' : 'n'}`).join(', ')
}

/** Content signals are for a whole site: what holds for some paths only cannot be said. */
export function signalsOf(uses: Uses): string {
  return SIGNALS.map(([use, label]) => `${label}=${isOpenFor(uses, use) ? 'yes' : 'no'}`).join(', ')
}

/** The values of the header, with the patterns of robots.txt that they are for. Empty: nothing is stated. */
export function usagesOf({ uses }: PublishedTerms): readonly LongestRule<string>[] {
  return isOpenEverywhere(uses) ? [] : byLongestMatch(mapped(uses, preferencesOf), () => false)
}

/** The same as text. */
export function usageForm(terms: PublishedTerms): string {
  return usagesOf(terms)
    .map(({ pattern, value }) => `${pattern} Content-Usage: ${value}\n`)
    .join('')
}

/** The value of the header `Content-Usage` for a target; `null`: the policy treats all uses alike. */
export function contentUsage({ uses }: PublishedTerms, matches: (pattern: string) => boolean): string | null {
  return isOpenEverywhere(uses) ? null : preferencesOf(valueFor(uses, matches))
}

/** Nothing is said about uses where none is closed. */
export function isOpenEverywhere(uses: PathRules<Uses>): boolean {
  return uses.every(({ value }) => !value.includes('-'))
}

/** An agent that gets in has what it comes for, whatever holds for others. */
export function withOwn(uses: Uses, isFor: Uses): Uses {
  return USES.map((use) => (isOpenFor(uses, use) || isOpenFor(isFor, use) ? '+' : '-')).join('') as Uses
}

const PREFERENCES: readonly (readonly [Use, string])[] = [
  ['training', 'train-ai'],
  ['search', 'search'],
]
const SIGNALS: readonly (readonly [Use, string])[] = [
  ['search', 'search'],
  ['input', 'ai-input'],
  ['training', 'ai-train'],
]
