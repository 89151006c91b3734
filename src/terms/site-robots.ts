import type { Software } from '../classify/known/software.ts'
import type { SoftwareNames } from '../classify/known/software-names.ts'
import type { Policy } from '../policy/policy.ts'
import { publishedTerms } from './published-terms.ts'
import { robotsForm } from './robots-form.ts'
import { RobotsTxt } from './robots-txt.ts'

/** What one agent finds in the robots.txt of a site. */
export interface SiteRobots {
  /** The app's own file; `null`: it has no such file, or it is unknown. */
  readonly own: string | null
  readonly host: string | null
  readonly nowMs: number
}

/** As the proxy publishes it: the policy and the app's own rules. It is read with the paths of requests, without queries. */
export function publishedRobots(
  policy: Policy,
  { software, names }: { readonly software: Software; readonly names: SoftwareNames | null },
  { own, host, nowMs }: SiteRobots,
): RobotsTxt {
  const terms = publishedTerms(policy, { list: [software], names }, host, nowMs)
  const parsed = own === null ? null : RobotsTxt.parse(own)
  const text = robotsForm(terms, { own: parsed, hasUsage: false, hasSignals: false, license: null })
  return RobotsTxt.forPaths(Uint8Array.from(text, (byte) => byte.charCodeAt(0)))
}
