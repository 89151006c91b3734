import type { Purpose, Software } from '../classify/known/software.ts'
import type { SoftwareNames } from '../classify/known/software-names.ts'
import type { Proof } from '../classify/verdict/proof.ts'
import { UNKNOWN, type Verdict } from '../classify/verdict/verdict.ts'
import type { Outcome } from '../policy/action.ts'
import { byPurpose } from '../policy/decide.ts'
import type { Facts } from '../policy/facts.ts'
import type { Policy } from '../policy/policy.ts'
import { Effort } from './effort.ts'
import { PolicyPaths } from './policy-paths.ts'
import { productToken } from './robots-txt.ts'
import { combined, everywhere, type PathRules } from './path-rules.ts'

/**
 * What a policy says to crawlers, in the form from which all published documents are made: who may get which paths, and
 * what for. It is about honest crawlers: an agent that can be verified is taken as verified, and none pretends to be
 * another.
 */
export interface PublishedTerms {
  readonly agents: readonly AgentTerms[]
  /** For crawlers that are not in the signatures. */
  readonly others: PathRules<boolean>
  /** For which uses the content is open, by path. */
  readonly uses: PathRules<Uses>
  /** Rules whose paths are not plain patterns. They are in force, but not published. */
  readonly unlisted: readonly Pick<Outcome, 'rule' | 'layer'>[]
}

export interface AgentTerms {
  /** Its name in robots.txt. */
  readonly token: string
  /** Of the agents with this token. */
  readonly names: readonly string[]
  readonly rules: PathRules<boolean>
  /** Whether its own purposes make it an agent of this use. */
  readonly isFor: Uses
}

/** `training`: of models; `input`: answers for a user, with the content as their source; `search`: an index with links. */
export type Use = (typeof USES)[number]
export const USES = ['search', 'input', 'training'] as const
/** The uses, in the order of `USES`, each `+` or `-`: a text, so that equal ones are one value. */
export type Uses = `${'+' | '-'}${'+' | '-'}${'+' | '-'}`

export const NO_USE: Uses = '---'

export function isOpenFor(uses: Uses, use: Use): boolean {
  return uses[USES.indexOf(use)] === '+'
}

/** `host`: the site that is asked for; `null`: any. */
export function publishedTerms(
  policy: Policy,
  knowledge: { readonly list: readonly Software[]; readonly names: SoftwareNames | null },
  host: string | null,
  nowMs: number,
): PublishedTerms {
  const effort = new Effort()
  const paths = new PolicyPaths(policy, knowledge.names, effort)
  const both = (a: PathRules<boolean>, b: PathRules<boolean>) =>
    combined(
      a,
      b,
      (x, y) => x && y,
      () => false,
      effort,
    )
  const rulesFor = (verdict: Verdict, purpose: string | null = null) =>
    paths.of({ ...REQUEST, host, verdict }, nowMs, purpose)
  const byToken = new Map<string, AgentTerms>()
  for (const software of knowledge.list) {
    const { robotsToken, name } = software
    if (robotsToken === null || software.kind !== 'agent') continue
    const key = productToken(robotsToken)
    const verdict = honest(software)
    const readings = byPurpose(policy, { ...REQUEST, host, verdict })
    const rules = readings.map((purpose) => rulesFor(verdict, purpose)).reduce(both)
    const isFor = usesOf((use) => software.purposes.some((purpose) => PURPOSES[use].includes(purpose)))
    const known = byToken.get(key)
    byToken.set(key, {
      token: robotsToken,
      names: [...(known?.names ?? []), name],
      rules: known === undefined ? rules : both(known.rules, rules),
      isFor:
        known === undefined ? isFor : usesOf((use) => isOpenFor(isFor, use) || isOpenFor(known.isFor, use)),
    })
  }
  const open = USES.map((use) => PURPOSES[use].map((purpose) => rulesFor(unlisted([purpose]))).reduce(both))
  const uses = open.reduce<PathRules<string>>(
    (sum, rules) =>
      combined(
        sum,
        rules,
        (a, b) => a + (b ? '+' : '-'),
        (a) => `${a}-`,
        effort,
      ),
    everywhere(''),
  ) as PathRules<Uses>
  return {
    agents: [...byToken.values()].sort((a, b) => (a.token.toLowerCase() < b.token.toLowerCase() ? -1 : 1)),
    others: rulesFor({ ...UNKNOWN, kind: 'agent', confidence: 1 }),
    uses,
    unlisted: paths.unlisted,
  }
}

function usesOf(isOpen: (use: Use) => boolean): Uses {
  return USES.map((use) => (isOpen(use) ? '+' : '-')).join('') as Uses
}

/** The verdict on an agent that is what it says, and proves it if it can. */
export function honest(software: Software): Verdict {
  const { id, name, kind, category, purposes } = software
  return {
    ...UNKNOWN,
    kind: 'agent',
    agent: { id, name, category: category ?? 'custom', purposes },
    software: { id, name, kind },
    confidence: 1,
    nameConfidence: 1,
    proof: proofOf(software),
  }
}

/** By the best method that its vendor offers. */
function proofOf({ id, verification }: Software): Proof | null {
  const { signatureAgent, rangesUrl, ranges, reverseDns } = verification
  if (signatureAgent !== null) return { method: 'web-bot-auth', agent: signatureAgent, key: null }
  if (rangesUrl !== null || ranges !== null) return { method: 'ip-range', agent: id, key: null }
  return reverseDns.length > 0 ? { method: 'reverse-dns', agent: id, key: null } : null
}

function unlisted(purposes: readonly Purpose[]): Verdict {
  const agent = { id: '', name: '', category: 'crawler', purposes }
  return { ...UNKNOWN, kind: 'agent', agent, confidence: 1 }
}

export const REQUEST: Omit<Facts, 'verdict' | 'host'> = {
  method: 'GET',
  path: '/',
  address: '',
  rawHeaders: [],
  print: { connection: { ja4: null, stable: null, http2: null, noHello: null }, ja4h: null },
  forged: [],
}
const PURPOSES: Readonly<Record<Use, readonly Purpose[]>> = {
  search: ['search'],
  input: ['assistant', 'agent'],
  training: ['training'],
}
