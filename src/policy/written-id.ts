import type { SoftwareNames } from '../classify/known/software-names.ts'
import { didYouMean } from '../shared/did-you-mean.ts'
import { type DocumentProblem, shown } from '../shared/problem.ts'

/** An id, a name or an alias as written in a policy. */
export interface WrittenId {
  readonly of: 'agent' | 'software'
  readonly name: string
  /** Makes a problem at the place where the id is written. */
  problem(what: string): DocumentProblem
}

/**
 * The id that verdicts contain for this name. An unknown name stands for itself, because a feed may add it
 * later.
 */
export function resolvedId(name: string, names: SoftwareNames | null): string {
  return names?.find(name)?.id ?? name
}

/** Warns of ids that are unknown, ambiguous, or not of the expected kind. */
export function idWarnings(ids: readonly WrittenId[], names: SoftwareNames): readonly DocumentProblem[] {
  const warnings: DocumentProblem[] = []
  for (const { of, name, problem } of ids) {
    if (warnings.length === WARNINGS_MAX) break
    const suggests = warnings.length < SUGGESTIONS_MAX
    const what = warningOf(of, name, names, suggests)
    if (what !== null) warnings.push(problem(what))
  }
  return warnings
}

function warningOf(
  of: WrittenId['of'],
  name: string,
  names: SoftwareNames,
  suggests: boolean,
): string | null {
  const found = names.find(name)
  if (found === null) return `unknown ${of} ${shown(name)}${suggests ? nearest(name, names) : ''}`
  const sharing = names.sharing(name)
  if (sharing.length > 1)
    return `${shown(name)} is a name of ${sharing.map(({ id }) => id).join(' and of ')}; it is read as ${found.id}: write the id instead`
  if (of === 'agent' && found.kind !== 'agent')
    return `${shown(name)} is a ${found.kind}, not an agent, so it never matches here; use \`software\``
  return null
}

/** Compares only names of similar length, because there are thousands. */
function nearest(name: string, names: SoftwareNames): string {
  const apart = Math.max(1, name.length / 3)
  const near = [...names.all].filter(({ length }) => Math.abs(length - name.length) <= apart)
  return didYouMean(name, near)
}

/** Each suggestion searches all names. */
const SUGGESTIONS_MAX = 10
const WARNINGS_MAX = 100
