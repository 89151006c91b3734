import { EVIDENCE_KINDS, SPOOFED } from '../classify/known/evidence.ts'
import { PROOF_METHODS } from '../classify/verdict/proof.ts'
import { PROOF_EVIDENCE } from '../classify/verdict/proof-evidence.ts'
import { CATEGORIES, PURPOSES } from '../classify/known/software.ts'
import { didYouMean } from '../shared/did-you-mean.ts'

export const VERDICT_KINDS = ['agent', 'automation', 'human', 'unknown'] as const

/** The complete word lists. Any other word is a mistake: a rule with it would never hold. */
export const VOCABULARIES = {
  verdict: VERDICT_KINDS,
  category: CATEGORIES,
  purpose: PURPOSES,
  evidence: [...EVIDENCE_KINDS, ...PROOF_EVIDENCE, SPOOFED],
  'proof method': PROOF_METHODS,
} as const satisfies Record<string, readonly string[]>

/** Returns `unknown category "crawlr" (did you mean "crawler"?)`; `null` if the word is known. */
export function vocabularyProblem(of: keyof typeof VOCABULARIES, word: string): string | null {
  const words: readonly string[] = VOCABULARIES[of]
  if (words.includes(word)) return null
  const near = didYouMean(word, words)
  const there = near === '' && words.length <= LISTED_MAX ? `; expected one of ${words.join(', ')}` : near
  return `unknown ${of} ${JSON.stringify(word.slice(0, SHOWN_LENGTH_MAX))}${there}`
}

const LISTED_MAX = 10
const SHOWN_LENGTH_MAX = 60
