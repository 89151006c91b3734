import type { SoftwareNames } from '../classify/known/software-names.ts'
import type { DocumentProblem, Place } from '../shared/problem.ts'
import type { ExpressionCompiler } from './expression.ts'
import { Glob } from './glob.ts'
import type { PolicyRequest } from './request.ts'
import type { WrittenId } from './written-id.ts'

/** One compiled test. It returns whether a request meets a condition. */
export type Test = (request: PolicyRequest) => boolean

/** What the conditions of a policy need, collected while they are compiled. */
export interface PolicyNeeds {
  /** The names of the conditions and facts that the rules use. */
  readonly asked: Set<string>
  /** The steps of all expressions, each evaluated once. */
  steps: number
  /** How many conditions and expressions ask for the call of an MCP server. */
  mcpConditions: number
  /** Maps ids, names and aliases to ids. `null`: not known yet, so each name stands for itself. */
  readonly names: SoftwareNames | null
  /** Every id as written in the policy. */
  readonly ids: WrittenId[]
  /** Collects unknown words, which then never hold. `null`: they are refused. */
  readonly unknownWords: DocumentProblem[] | null
  readonly expressions: ExpressionCompiler
}

/** One test that holds if all of these hold. */
export function allOf(tests: readonly Test[]): Test {
  return tests.length === 1 ? tests[0]! : (request) => hold(tests, request)
}

export function hold(tests: readonly Test[], request: PolicyRequest): boolean {
  for (let i = 0; i < tests.length; i++) if (!tests[i]!(request)) return false
  return true
}

/** Reads every item; `null` if one is refused. */
export function all<Value>(place: Place, read: (item: Place) => Value | null): readonly Value[] | null {
  const values: Value[] = []
  const items = place.items()
  for (const item of items) {
    const value = read(item)
    if (value !== null) values.push(value)
  }
  return values.length === items.length && items.length > 0 ? values : null
}

export function glob(place: Place, what: string, casing: 'exact' | 'ignore-case'): Glob | null {
  const pattern = place.text(what)
  return pattern === null ? null : Glob.parse(pattern, casing)
}
