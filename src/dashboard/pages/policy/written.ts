import type { Policy } from '../../api/operations.ts'
import { lineOfProblem } from './json-place.ts'

/** The text in the editor: a policy, or the position of its first error. */
export type Written =
  | { readonly kind: 'policy'; readonly policy: Policy }
  | { readonly kind: 'wrong'; readonly why: string; readonly line: number | null }

export function readWritten(text: string): Written {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return { kind: 'policy', policy: value as Policy }
    return { kind: 'wrong', why: 'a policy must be an object, such as {"rules": []}', line: 1 }
  } catch (error) {
    const { message } = error as Error
    return { kind: 'wrong', why: message, line: lineOfProblem(text) }
  }
}

/** The text form for display and comparison. */
export function writtenAs(policy: unknown): string {
  return JSON.stringify(policy, null, 2)
}
