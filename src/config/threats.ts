import { boolean, duration, integer, optional, path } from './kinds.ts'
import { type ValueOf, section, setting } from './items.ts'

export const THREATS = section(
  'Which requests are reported as threats (`threat_detected` events); config/guide/events.md describes each kind.',
  {
    spoofed_browser: setting(
      boolean,
      true,
      'A client claims to be a browser, but its fingerprints or headers contradict that.',
    ),
    foreign_address: setting(
      boolean,
      true,
      'A client claims to be an agent, but its address is not in the published ranges or host names of the vendor.',
    ),
    proof_failed: setting(
      boolean,
      true,
      'The signature of a request is invalid, or was made by another agent than the one the client claims to be.',
    ),
    proof_contradicted: setting(
      boolean,
      true,
      'A valid signature proves the agent, but the TLS fingerprint or the address does not belong to that agent.',
    ),
    forged_headers: setting(boolean, true, 'A client sends headers that only the proxy may set.'),
    blocked: setting(boolean, true, 'A rule blocks a request, or delays it before it is refused.'),
    rate_limited: setting(boolean, true, 'A request exceeds the limit of a rule.'),
    rate_anomaly: setting(boolean, true, 'An agent sends far more requests than usual.'),
    rate_anomaly_factor: setting(
      integer(2, 10_000),
      10,
      'For `rate_anomaly`: how many times the usual rate counts as an anomaly.',
    ),
    rate_anomaly_requests: setting(
      integer(1, 100_000_000),
      300,
      'For `rate_anomaly`: minimum number of requests in five minutes.',
    ),
    crawl_campaign: setting(
      boolean,
      true,
      'One crawler comes from many addresses; config/guide/campaigns.md says how it is found. Needs `classify.campaigns`.',
    ),
    robots_violation: setting(
      boolean,
      true,
      'A crawler requests a path that robots.txt disallows. Needs `robots_file` or `robots_upstream`.',
    ),
    robots_file: setting(
      optional(path),
      null,
      'A copy of the robots.txt of the sites behind the proxy. Read again every ten seconds.',
    ),
    robots_upstream: setting(
      boolean,
      false,
      'Whether to fetch robots.txt from the first upstream if `robots_file` is not set: once an hour for each host that crawlers request.',
    ),
    window: setting(
      duration('1m', '1h'),
      '5m',
      'How long a repeated threat with the same fingerprint and address is only counted after it was reported.',
    ),
    events_per_minute: setting(
      integer(1, 1_000),
      30,
      'Maximum individual events per minute, for each kind of threat at each app, and for new signatures. Further ones are summarized in one event a minute.',
    ),
  },
)

export interface ThreatsConfig {
  /** The reasons that are reported: `blocked`, … */
  readonly reasons: readonly string[]
  readonly anomaly: { readonly factor: number; readonly requestsMin: number }
  readonly robots: { readonly file: string | null; readonly isFromUpstream: boolean }
  readonly windowMs: number
  readonly eventsPerMinute: number
}

export function threatsConfig(threats: ValueOf<typeof THREATS>): ThreatsConfig {
  const { rate_anomaly_factor, rate_anomaly_requests, robots_file, window, events_per_minute } = threats
  const robots = { file: robots_file, isFromUpstream: threats.robots_upstream }
  return {
    reasons: Object.entries(threats).flatMap(([reason, value]) => (value === true ? [reason] : [])),
    anomaly: { factor: rate_anomaly_factor, requestsMin: rate_anomaly_requests },
    robots,
    windowMs: window,
    eventsPerMinute: events_per_minute,
  }
}
