import { Alike } from './alike.ts'
import { Effort } from './effort.ts'
import { byLongestMatch, longer, written } from './longest-match.ts'
import { combined, mapped, type PathRules } from './path-rules.ts'
import { type AgentTerms, NO_USE, type PublishedTerms, type Uses } from './published-terms.ts'
import { accessIn } from './own-rules.ts'
import { productToken, type RobotsRule, type RobotsTxt } from './robots-txt.ts'
import { isOpenEverywhere, preferencesOf, signalsOf, withOwn } from './usage-form.ts'

export interface RobotsForm {
  /** Whether to add `Content-Usage` rules (draft-ietf-aipref-attach). */
  readonly hasUsage: boolean
  readonly hasSignals: boolean
  /** The URL of the RSL document, for a `License` line; `null`: no such line. */
  readonly license: string | null
  /** The app's own robots.txt, whose rules are kept; `null`: the app has no such file. */
  readonly own: RobotsTxt | null
}

/** The robots.txt (RFC 9309) of the terms. A crawler may get what both they and the app's own rules allow. */
export function robotsForm(terms: PublishedTerms, form: RobotsForm): string {
  const { own, license } = form
  const everyone = { token: '*', rules: terms.others, isFor: NO_USE }
  const effort = new Effort()
  const all = blocksOf(everyone, terms, form, effort)
  const tokensByBlock = new Map<string, string[]>()
  const add = (blocks: readonly string[], token: string) => {
    for (const block of blocks) tokensByBlock.set(block, [...(tokensByBlock.get(block) ?? []), token])
  }
  const made = new Alike<readonly string[]>()
  for (const agent of [...terms.agents, ...onlyIn(own, terms)]) {
    // Most agents are treated like many others.
    const parts = [agent.rules, own?.rulesOf(productToken(agent.token)), agent.isFor]
    const blocks = made.of(parts, () => blocksOf(agent, terms, form, effort))
    // What holds for every crawler need not be repeated.
    if (blocks.join() !== all.join()) add(blocks, agent.token)
  }
  add(all, '*')
  const groups = [...tokensByBlock].map(
    ([block, tokens]) => `${tokens.map((token) => `User-agent: ${token}\n`).join('')}${block}`,
  )
  const lines = [...(own?.others ?? []), ...(license === null ? [] : [`License: ${license}`])]
  return [ABOUT, ...(lines.length === 0 ? [] : [`${lines.join('\n')}\n`]), ...groups].join('\n')
}

type Addressed = Pick<AgentTerms, 'token' | 'rules' | 'isFor'>

/** Crawlers that the app's own file names and the signatures do not. */
function onlyIn(own: RobotsTxt | null, { agents, others }: PublishedTerms): readonly Addressed[] {
  const known = new Set(['', '*', ...agents.map(({ token }) => productToken(token))])
  const tokens = new Set(own?.groups.flatMap((group) => group.tokens))
  return [...tokens]
    .filter((token) => !known.has(token))
    .map((token) => ({ token, rules: others, isFor: NO_USE }))
}

/** The rules for a crawler. It follows all groups with its name, so that long rules can be shared with others. */
function blocksOf(
  { token, rules, isFor }: Addressed,
  { uses }: PublishedTerms,
  form: RobotsForm,
  effort: Effort,
): readonly string[] {
  const { own, hasUsage, hasSignals } = form
  const ownRules = own?.rulesOf(productToken(token)) ?? []
  const isOwnOnly = rules.length === 1 && rules[0]!.value && ownRules.length > 0
  const isShut = rules.every(({ value }) => !value)
  // A file of that length cannot be worked into the policy in a moment.
  const isLong = ownRules.length > OWN_RULES_MAX && !isShut
  const open =
    own === null || isLong || isShut
      ? rules
      : combined(
          rules,
          accessIn(own, productToken(token)),
          (a, b) => a && b,
          () => false,
          effort,
        )
  const ownLines = ownRules.map(({ allows, pattern }) => `${allows ? 'Allow' : 'Disallow'}: ${pattern}`)
  const access = isLong ? closedBeside(rules, ownRules) : isOwnOnly ? ownLines : linesOf(open)
  const usable = combined<boolean, Uses, Uses | null>(
    open,
    isOpenEverywhere(uses) ? [] : uses,
    (allows, each) => (allows ? withOwn(each, isFor) : null),
    () => null,
    effort,
  )
  const preferences = mapped(usable, (value) => (value === null ? null : preferencesOf(value)))
  const usage = byLongestMatch(preferences, () => false).flatMap(({ pattern, value }) =>
    value === null ? [] : `Content-Usage: ${pattern === '/' ? '' : `${pattern} `}${value}`,
  )
  const mostly = usable.at(-1)?.value ?? null
  const lines = [
    ...access,
    ...(hasUsage ? usage : []),
    ...(hasSignals && mostly !== null ? [`Content-Signal: ${signalsOf(mostly)}`] : []),
  ]
  const others = own?.groupsOf(productToken(token)).flatMap((group) => group.others) ?? []
  const blocks = isLong ? [[...ownLines, ...others], lines] : [[...lines, ...others]]
  return blocks.filter(({ length }) => length > 0).map((block) => block.map((line) => `${line}\n`).join(''))
}

function linesOf(rules: PathRules<boolean>): readonly string[] {
  const made = byLongestMatch(
    rules,
    (allows) => allows,
    () => false,
  )
  return made.map(({ pattern, value }) => `${value ? 'Allow' : 'Disallow'}: ${pattern}`)
}

/** The paths that the policy closes, so that they win over all of the app's own rules. */
function closedBeside(rules: PathRules<boolean>, own: readonly RobotsRule[]): readonly string[] {
  const longest = own.reduce((most, { length }) => Math.max(most, length), 0)
  const closed = rules.flatMap(({ pattern, value }) => (value ? [] : [written(pattern)]))
  return closed.map((pattern) => `Disallow: ${longer(pattern, longest + 1)}`)
}

/** Rules of one crawler. */
const OWN_RULES_MAX = 500
const ABOUT = `# Made by Gatehouse from its policy, which holds for crawlers that do not read this file, too.\n`
