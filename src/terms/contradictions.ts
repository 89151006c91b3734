import { Alike } from './alike.ts'
import type { Effort } from './effort.ts'
import { linesFor } from './own-rules.ts'
import { combined } from './path-rules.ts'
import type { AgentTerms, PublishedTerms } from './published-terms.ts'
import { written } from './longest-match.ts'
import { productToken, type RobotsRule, type RobotsTxt } from './robots-txt.ts'

/** Where a robots.txt and a policy say different things to the same crawlers. */
export interface Contradiction {
  /** `refused`: robots.txt allows it and the policy turns the crawler away. `let-in`: the other way round. */
  readonly kind: 'refused' | 'let-in'
  /** As in robots.txt. */
  readonly pattern: string
  /** The line of robots.txt that decides; `null`: none, so it is allowed. */
  readonly line: Pick<RobotsRule, 'line' | 'lineNumber'> | null
  /** In robots.txt; `*`: crawlers that are not in the signatures. */
  readonly tokens: readonly string[]
}

export interface RobotsComparison {
  /** Each group of crawlers and paths once, in the order of the lines. */
  readonly contradictions: readonly Contradiction[]
  /** `false`: there may be more, for patterns that take too long to compare. */
  readonly isComplete: boolean
}

export function compared(terms: PublishedTerms, robots: RobotsTxt, effort: Effort): RobotsComparison {
  const found = new Map<string, Contradiction & { tokens: string[] }>()
  const everyone = { token: '*', rules: terms.others }
  const alike = new Alike<ReturnType<typeof differing>>()
  for (const { token, rules } of [...terms.agents, everyone]) {
    const parts = [rules, robots.rulesOf(productToken(token))]
    for (const { pattern, value } of alike.of(parts, () => differing(robots, { token, rules }, effort))) {
      if (value === null) continue
      const key = `${value.kind} ${value.line?.lineNumber ?? 0} ${pattern}`
      const same = found.get(key)
      if (same === undefined) found.set(key, { ...value, pattern: written(pattern), tokens: [token] })
      else same.tokens.push(token)
    }
  }
  const all = [...found.values()].sort((a, b) => (a.line?.lineNumber ?? 0) - (b.line?.lineNumber ?? 0))
  return { contradictions: all, isComplete: !effort.isOver }
}

type Difference = Pick<Contradiction, 'kind' | 'line'>

function differing(robots: RobotsTxt, { token, rules }: Pick<AgentTerms, 'token' | 'rules'>, effort: Effort) {
  // One value for each line and kind, so that equal ones are merged.
  const known = new Map<string, Difference>()
  return combined<RobotsRule | null, boolean, Difference | null>(
    linesFor(robots, productToken(token)),
    rules,
    (line, getsIn) => {
      const mayCome = line === null || line.allows
      if (mayCome === getsIn) return null
      const kind = getsIn ? 'let-in' : 'refused'
      const key = `${kind} ${line?.lineNumber ?? 0}`
      const difference = known.get(key) ?? { kind, line }
      known.set(key, difference)
      return difference
    },
    () => null,
    effort,
  )
}
