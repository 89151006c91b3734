import type { Sighting } from '../../../plane/sighting.ts'
import type { ThreatReason } from './threat.ts'

/** A condition that makes a request a threat. It is checked for every request, so it has to be cheap. */
export interface ThreatRule {
  readonly reason: ThreatReason
  holds(sighting: Sighting, robots: RobotsRules): boolean
  /** Explains why the rule holds. Call it only if the rule holds. */
  detail(sighting: Sighting, robots: RobotsRules): string
}

/** What the sites behind the gateway disallow for crawlers. */
export interface RobotsRules {
  /** The line of robots.txt that disallows the path; `null`: the path is allowed, or the file is unknown. */
  disallowing(agent: string, host: string | null, path: string): string | null
}
