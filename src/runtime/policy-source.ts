import { ConfigFault, type Problem, placed, placedProblem, readSource } from '../config/source.ts'
import { type Policy, type PolicyReading, parsePolicy, policyWarnings } from '../policy/policy.ts'
import type { DocumentProblem } from '../shared/problem.ts'
import { Fault } from '../shared/fault.ts'
import { unreadable } from '../terminal/unreadable.ts'
import { readBounded } from '../shared/bounded-file.ts'

/** Throws a Fault that names the file. */
export async function textIn(file: string): Promise<string> {
  const bytes = await readBounded(file).catch((error) => {
    throw new Fault('UNREADABLE', `${file}: ${unreadable(error).message}`, { cause: error })
  })
  return decodedText(bytes, file)
}

/** `name`: where the bytes come from, for the Fault. */
export function decodedText(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new ConfigFault([{ where: name, what: 'is not UTF-8 text' }])
  }
}

/** A policy file. */
export interface PolicyText {
  /** As its author wrote it, for sending on. */
  readonly document: unknown
  readonly policy: Policy
  /** Parts that may not do what the author intends. */
  readonly warnings: readonly Problem[]
  /** Adds the line to a problem of the document. */
  placed(problem: DocumentProblem): Problem
}

/** Throws a ConfigFault with lines and rules. Without `names`, ids are not checked. */
export function parsePolicyText(text: string, name: string, reading: PolicyReading = {}): PolicyText {
  const source = readSource(text, name)
  const policy = placed(source, () => parsePolicy(source.value, reading))
  const inText = (problem: DocumentProblem) => placedProblem(source, problem)
  const warnings = policyWarnings(policy, reading.names ?? null).map(inText)
  return { document: source.value, policy, warnings, placed: inText }
}
