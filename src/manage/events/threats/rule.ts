import type { Sighting } from '../../../plane/sighting.ts'
import type { Reason } from './threat.ts'

/** What makes a request a threat. Asked of every request there is: it looks at little. */
export interface Rule {
  readonly reason: Reason
  holds(sighting: Sighting, robots: RobotsRules): boolean
  /** What of it shows that, in words; of one that holds. */
  detail(sighting: Sighting, robots: RobotsRules): string
}

/** What the sites behind the gateway ask crawlers to leave alone. */
export interface RobotsRules {
  /** The line of robots.txt that disallows it for this agent; `null`: none does, or nobody knows. */
  disallowing(agent: string, host: string | null, path: string): string | null
}
