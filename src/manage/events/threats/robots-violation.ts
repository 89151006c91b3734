import type { Sighting } from '../../../plane/sighting.ts'
import type { RobotsRules, Rule } from './rule.ts'

/** A crawler that names or has proven its identity requests a path that robots.txt disallows. */
export const ROBOTS_VIOLATION: Rule = {
  reason: 'robots_violation',
  holds: (sighting, robots) => isDeclaredCrawler(sighting) && lineAgainst(sighting, robots) !== null,
  detail: (sighting, robots) => `robots.txt asks it not to: ${lineAgainst(sighting, robots)}`,
}

function isDeclaredCrawler({ category, agent, verified, evidence }: Sighting): boolean {
  if (category !== 'crawler' || agent === null) return false
  return verified !== null || evidence.includes('names-agent')
}

function lineAgainst({ agent, host, path }: Sighting, robots: RobotsRules): string | null {
  return robots.disallowing(agent!, host, path)
}
