import { TRIGGERS } from '../classify/known/claims/agent-card.ts'
import { PROOF_METHODS, type ProofMethod, type SignerFacts } from '../classify/verdict/proof.ts'
import { didYouMean } from '../shared/did-you-mean.ts'
import { type Place, shown } from '../shared/problem.ts'
import { all, glob, type PolicyNeeds, type Test } from './condition-form.ts'
import type { Facts } from './facts.ts'
import { Glob, matchesAny } from './glob.ts'
import { VERDICT_KINDS, VOCABULARIES, vocabularyProblem } from './vocabulary.ts'
import { resolvedId, type WrittenId } from './written-id.ts'

export function verdict(place: Place): Test | null {
  const kinds = all(place, (item) => item.choice(VERDICT_KINDS))
  return kinds && ((request) => kinds.includes(request.facts.verdict.kind))
}

export function agent(place: Place, needs: PolicyNeeds): Test | null {
  const ids = all(place, (item) => idIn(item, 'agent', needs))
  if (ids === null) return null
  const set = new Set(ids)
  return ({ facts }) => facts.verdict.agent !== null && set.has(facts.verdict.agent.id)
}

export function category(place: Place, needs: PolicyNeeds): Test | null {
  const categories = words(place, needs, 'category')
  if (categories === null) return null
  const set = new Set(categories)
  return ({ facts }) => facts.verdict.agent !== null && set.has(facts.verdict.agent.category)
}

export function purpose(place: Place, needs: PolicyNeeds): Test | null {
  const purposes = words(place, needs, 'purpose')
  if (purposes === null) return null
  const set = new Set(purposes)
  return ({ facts, purpose }) => {
    const { agent } = facts.verdict
    if (agent === null) return false
    if (purpose !== null) return set.has(purpose)
    for (const each of agent.purposes) if (set.has(each)) return true
    return false
  }
}

export function software(place: Place, needs: PolicyNeeds): Test | null {
  const ids = all(place, (item) => idIn(item, 'software', needs))
  if (ids === null) return null
  const set = new Set(ids)
  return ({ facts }) => facts.verdict.software !== null && set.has(facts.verdict.software.id)
}

export function evidence(place: Place, needs: PolicyNeeds): Test | null {
  const globs = all(place, (item) => evidenceGlob(item, needs))
  return globs && (({ facts }) => facts.verdict.evidence.some(({ kind }) => matchesAny(globs, kind)))
}

export function confidenceMin(place: Place): Test | null {
  const { value } = place
  if (typeof value !== 'number' || !(value >= 0 && value <= 1))
    return place.refuse(`is ${shown(value)}; expected a number from 0 to 1`)
  return (request) => request.facts.verdict.confidence >= value
}

export function verified(place: Place): Test | null {
  const { value } = place
  if (typeof value === 'boolean') return ({ facts }) => (facts.verdict.proof !== null) === value
  if (!Array.isArray(value) && !PROOF_METHODS.includes(value as ProofMethod))
    return place.refuse(
      `is ${shown(value)}; expected true, false, or any of ${PROOF_METHODS.join(', ')}${nearestIn(PROOF_METHODS, value)}`,
    )
  const methods = all(place, (item) => item.choice(PROOF_METHODS))
  return (
    methods && (({ facts: { verdict } }) => verdict.proof !== null && methods.includes(verdict.proof.method))
  )
}

export function listed(place: Place): Test | null {
  const wanted = place.boolean()
  return wanted === null ? null : ({ facts }) => (facts.verdict.agent !== null) === wanted
}

export function signer(place: Place): Test | null {
  const globs = all(place, (item) => glob(item, 'the URL of a signer, like https://agent.example', 'exact'))
  return (
    globs &&
    (({ facts }) => {
      const { proof } = facts.verdict
      return proof !== null && proof.method === 'web-bot-auth' && matchesAny(globs, proof.agent)
    })
  )
}

/** All members must match. A card counts only if the signature of its agent is the proof. */
export function card(place: Place, needs: PolicyNeeds): Test | null {
  if (typeof place.value === 'boolean')
    return ({ facts }) => ((signerFacts(facts)?.card ?? null) !== null) === place.value
  const tests: ((signer: SignerFacts) => boolean)[] = []
  const members = place.members(CARD_MEMBERS)
  if (place.isEmpty) return place.refuse('is empty; write `card: true` for any card')
  const [purpose, trigger, robots, registry] = CARD_MEMBERS.map((name) => members.get(name))
  const purposes = purpose === undefined ? null : words(purpose, needs, 'purpose')
  if (purposes !== null)
    tests.push((by) => by.card?.purposes.some((each) => purposes.includes(each)) === true)
  const triggers = trigger === undefined ? null : all(trigger, (item) => item.choice(TRIGGERS))
  if (triggers !== null)
    tests.push(({ card }) => (card?.trigger ?? null) !== null && triggers.includes(card!.trigger!))
  const keepsRobots = robots?.boolean() ?? null
  if (keepsRobots !== null) tests.push(({ card }) => card !== null && card.keepsRobots === keepsRobots)
  const globs =
    registry === undefined ? null : all(registry, (item) => glob(item, 'the URL of a registry', 'exact'))
  if (globs !== null) tests.push(({ registries }) => registries.some((url) => matchesAny(globs, url)))
  if (tests.length < members.size) return null
  return ({ facts }) => {
    const signer = signerFacts(facts)
    return signer !== null && tests.every((test) => test(signer))
  }
}

/** `null`: nothing is known about the signer, or another proof counts. */
export function signerFacts({ signer, verdict: { proof } }: Facts): SignerFacts | null {
  return proof?.method === 'web-bot-auth' ? (signer ?? null) : null
}

export function forged(place: Place): Test | null {
  const wanted = place.boolean()
  return wanted === null ? null : ({ facts }) => facts.forged.length > 0 === wanted
}

export function campaign(place: Place): Test | null {
  const { value } = place
  if (typeof value === 'boolean') return ({ facts }) => ((facts.campaign ?? null) !== null) === value
  const ids = all(place, (item) =>
    item.text('true, false, or the id of a campaign, like cmp_x7c1Jq0aT5b2Lw9k'),
  )
  if (ids === null) return null
  const set = new Set(ids)
  return ({ facts }) => set.has(facts.campaign ?? '')
}

function idIn(item: Place, of: WrittenId['of'], { names, ids }: PolicyNeeds): string | null {
  const name = item.text(of === 'agent' ? 'the id of an agent' : 'the id of software')
  if (name === null) return null
  ids.push({ of, name, problem: (what) => item.problem(what) })
  return resolvedId(name, names)
}

function words(place: Place, needs: PolicyNeeds, of: 'category' | 'purpose'): readonly string[] | null {
  return all(place, (item) => {
    const name = item.text(`the ${of} of an agent`)
    const problem = name === null ? null : vocabularyProblem(of, name)
    return problem === null ? name : unknownWord(item, needs, problem, name)
  })
}

/** Refuses the word, or keeps it and warns. */
function unknownWord<Word>(
  item: Place,
  { unknownWords }: PolicyNeeds,
  problem: string,
  word: Word,
): Word | null {
  if (unknownWords === null) return item.refuse(problem)
  unknownWords.push(item.problem(`${problem}; it never matches`))
  return word
}

function evidenceGlob(item: Place, needs: PolicyNeeds): Glob | null {
  const pattern = item.text('a kind of evidence, like spoofed-browser')
  if (pattern === null) return null
  const parsed = Glob.parse(pattern, 'exact')
  if (VOCABULARIES.evidence.some((kind) => matchesAny([parsed], kind))) return parsed
  const problem = pattern.includes('*')
    ? `${shown(pattern)} matches no kind of evidence`
    : vocabularyProblem('evidence', pattern)!
  return unknownWord(item, needs, problem, parsed)
}

/** Returns ` (did you mean "x"?)`, or an empty text. */
function nearestIn(words: readonly string[], value: unknown): string {
  return typeof value === 'string' ? didYouMean(value, words) : ''
}

/** Of `card`. */
export const CARD_MEMBERS = ['purpose', 'trigger', 'robots', 'registry'] as const
