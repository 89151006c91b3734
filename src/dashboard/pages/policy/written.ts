import { stringify } from 'yaml'
import { ConfigFault, readSource } from '../../../config/source.ts'
import type { Policy } from '../../api/operations.ts'

/** The text in the editor: a policy, or what is wrong with it. */
export type Written =
  | {
      readonly kind: 'policy'
      readonly policy: Policy
      /** The line of the value at a JSON pointer, or of the nearest value around it. */
      lineOf(pointer: string): number
    }
  | { readonly kind: 'wrong'; readonly problems: readonly LineProblem[] }

/** `line`: from 1; `null`: of the whole text. */
export interface LineProblem {
  readonly line: number | null
  readonly what: string
}

/** Reads YAML or JSON, as `gatehouse check` reads a policy file. */
export function readWritten(text: string): Written {
  try {
    const { value, place } = readSource(text, NAME)
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return { kind: 'wrong', problems: [{ line: 1, what: 'a policy must be a mapping, such as rules: []' }] }
    // As it is sent.
    const policy = JSON.parse(JSON.stringify(value)) as Policy
    return { kind: 'policy', policy, lineOf: (pointer) => lineIn(place(pointer)) ?? 1 }
  } catch (error) {
    if (!(error instanceof ConfigFault)) throw error
    const problems = error.problems.map(({ where, what }) => ({ line: lineIn(where), what }))
    return { kind: 'wrong', problems }
  }
}

/** The text form for display and comparison. */
export function writtenAs(policy: unknown): string {
  return stringify(policy, STYLE)
}

/** Of `policy:7:11`. */
function lineIn(where: string): number | null {
  const [, line] = /:(\d+):\d+$/.exec(where) ?? []
  return line === undefined ? null : Number(line)
}

const NAME = 'policy'
const STYLE = { version: '1.2', schema: 'core', lineWidth: 0, aliasDuplicateObjects: false } as const
