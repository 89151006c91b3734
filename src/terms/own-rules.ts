import { anchored, EVERY_PATH, type PathPattern } from './path-pattern.ts'
import type { PathRules } from './path-rules.ts'
import type { RobotsRule, RobotsTxt } from './robots-txt.ts'

/** Whether a robots.txt lets a crawler have each target. */
export function accessIn(robots: RobotsTxt, token: string): PathRules<boolean> {
  return linesFor(robots, token).map(({ pattern, value }) => ({
    pattern,
    value: value === null || value.allows,
  }))
}

/**
 * The rule that decides about each target, in the order in which a crawler lets them decide: the longest first, and of
 * equally long ones those that allow. `null`: none does.
 */
export function linesFor(robots: RobotsTxt, token: string): PathRules<RobotsRule | null> {
  const ordered = [...robots.rulesOf(token)].sort(
    (a, b) => b.length - a.length || Number(b.allows) - Number(a.allows),
  )
  const rules = ordered.flatMap((rule) => patternsOf(rule).map((pattern) => ({ pattern, value: rule })))
  return [...rules, { pattern: EVERY_PATH, value: null }]
}

/** A rule that begins neither with a slash nor with a star matches nothing. */
function patternsOf({ pattern }: RobotsRule): readonly PathPattern[] {
  if (!/^[/*]/.test(pattern)) return []
  return anchored(pattern.endsWith('$') ? pattern.slice(0, -1) : `${pattern}*`)
}
