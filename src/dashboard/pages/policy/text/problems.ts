import type { PolicyWarning } from '../../../api/operations.ts'
import type { Written } from '../written.ts'

/** A problem of the text and the line that it is about. */
export interface TextProblem {
  readonly severity: 'error' | 'warning'
  /** From 1. `null`: the whole text. */
  readonly line: number | null
  /** What is wrong, and in which line. */
  readonly text: string
}

/** Why the text is not YAML. */
export function syntaxProblems(written: Written): readonly TextProblem[] {
  return written.kind === 'policy'
    ? []
    : written.problems.map(({ line, what }) => problemAt('error', line, what))
}

/** The problems that the server found. `around`: the place of the policy in what was sent to it. */
export function policyProblems(
  written: Written,
  severity: TextProblem['severity'],
  found: readonly PolicyWarning[],
  around = '',
): readonly TextProblem[] {
  if (written.kind === 'wrong') return []
  return found
    .filter(({ pointer }) => pointer.startsWith(around))
    .map(({ pointer, detail }) => problemAt(severity, written.lineOf(pointer.slice(around.length)), detail))
}

/** The first problem, and how many more there are. `null`: none. */
export function summaryOf(problems: readonly TextProblem[]): string | null {
  const [first, ...more] = problems
  if (first === undefined) return null
  return more.length === 0 ? first.text : `${first.text} (and ${more.length} more)`
}

function problemAt(severity: TextProblem['severity'], line: number | null, what: string): TextProblem {
  return { severity, line, text: line === null ? what : `Line ${line}: ${what}` }
}
