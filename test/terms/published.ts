import { parseSoftwareList, type Software } from '../../src/classify/known/software.ts'
import { SoftwareNames } from '../../src/classify/known/software-names.ts'
import { decide } from '../../src/policy/decide.ts'
import { type Policy, parsePolicy } from '../../src/policy/policy.ts'
import { honest, publishedTerms, REQUEST } from '../../src/terms/published-terms.ts'
import { UNKNOWN } from '../../src/classify/verdict/verdict.ts'

const WHEN = { source: 'a test', date: '2026-11-28' }
const purposes = (...words: string[]) => words.map((is) => ({ is, ...WHEN }))

export const LIST = parseSoftwareList([
  crawler('searcher', 'SearchBot', purposes('search')),
  crawler('trainer', 'TrainBot', purposes('training')),
  crawler('both', 'BothBot', purposes('search', 'training')),
  crawler('helper', 'HelperBot', purposes('assistant')),
  { ...crawler('proven', 'ProvenBot', purposes('search')), verification: { reverse_dns: ['.proven.test'] } },
  crawler('silent', 'SilentBot', []),
  crawler('two-words', 'Two Words', purposes('training')),
])
export const KNOWLEDGE = { list: LIST, names: SoftwareNames.of(LIST) }
export const NOW_MS = Date.UTC(2026, 10, 28)

function crawler(id: string, robots_token: string, purpose: readonly object[]) {
  return {
    id,
    name: robots_token,
    kind: 'agent',
    category: 'crawler',
    robots_token,
    ...(purpose.length > 0 && { purpose }),
  }
}

export function policyOf(document: object): Policy {
  return parsePolicy(document, { names: KNOWLEDGE.names })
}

export function termsOf(policy: Policy, host: string | null = null) {
  return publishedTerms(policy, KNOWLEDGE, host, NOW_MS)
}

/** Whether the policy lets an honest crawler have a target. `null`: a crawler without a signature. */
export function getsIn(
  policy: Policy,
  software: Software | null,
  target: string,
  host: string | null = null,
): boolean {
  const verdict = software === null ? { ...UNKNOWN, kind: 'agent' as const, confidence: 1 } : honest(software)
  const { action } = decide(policy, { ...REQUEST, host, path: target, verdict }, NOW_MS)
  return action.kind !== 'block' && action.kind !== 'tarpit' && action.kind !== 'redirect'
}
