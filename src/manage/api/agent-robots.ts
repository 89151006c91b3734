import * as z from 'zod'
import { parseSoftware, type Software } from '../../classify/known/software.ts'
import { shownPath } from '../../plane/privacy/shown-path.ts'
import type { Policy } from '../../policy/policy.ts'
import type { ScannedRow } from '../../store/traffic/request-search.ts'
import { hostGroup } from '../../terms/host-group.ts'
import { RobotsTxt } from '../../terms/robots-txt.ts'
import { publishedRobots } from '../../terms/site-robots.ts'
import { textInQuery, timeOf } from '../http/schemas.ts'
import { type Sight, sightOf } from '../intake/personal-data.ts'
import { knowledgeOf } from '../judging/detection.ts'
import { filteredApps, TEAM_FILTER } from './app-filters.ts'
import type { ApiContext } from './context.ts'
import { type ApiOperation, operation } from './operation.ts'
import { compiledInForce, policyFor } from './policy-layer.ts'
import { count, stoppedAt, WINDOWS, window } from './stats-answer.ts'
import { softwareInPath } from './software-id.ts'

const PATHS_SHOWN = 10
const conformity = z
  .strictObject({
    agent_id: z.string(),
    window,
    robots_token: z.string().nullable().meta({
      description: 'Its name in robots.txt. `null`: it has no name there, so no request is compared.',
    }),
    requests: count.meta({ description: 'The recorded requests that were read.' }),
    estimated: count.meta({
      description:
        'How many requests these stand for, where only a share of them is recorded (`sampled`). The same number otherwise.',
    }),
    robots_requests: count.meta({ description: 'Those for `/robots.txt`.' }),
    compared: count.meta({
      description:
        'Those to sites with a known robots.txt, without those for `/robots.txt`: a file of `threats.robots_file` or `threats.robots_upstream`, or the policy if `publish.robots` is on.',
    }),
    disallowed: count.meta({ description: 'Those of the compared ones that robots.txt disallows today.' }),
    share: z.number().min(0).max(1).nullable().meta({
      description:
        'The share of disallowed requests in the compared ones, estimated. `null`: none was compared.',
    }),
    paths: z
      .array(
        z.strictObject({
          app: z.string(),
          host: z.string().nullable(),
          path: z.string().meta({ description: 'As the list of requests shows it.' }),
          line: z.string().meta({ description: 'The line of robots.txt.' }),
          requests: count,
        }),
      )
      .max(PATHS_SHOWN)
      .meta({ description: 'The disallowed paths with the most requests.' }),
    stopped_at: stoppedAt,
  })
  .meta({ id: 'AgentRobots' })

const getAgentRobots = operation({
  id: 'getAgentRobots',
  method: 'GET',
  path: '/agents/{agent_id}/robots',
  tag: 'Statistics',
  summary: 'Compare the requests of an agent with robots.txt',
  description:
    'Which of its recorded requests in the window the robots.txt of today disallows. It begins with the newest requests and stops after about half a second. Clients that only claim to be the agent are counted, too.',
  scopes: ['read'],
  reach: 'filtered',
  params: z.strictObject({ agent_id: z.string() }),
  find: softwareInPath,
  query: z.strictObject({
    window: window
      .default('24h')
      .meta({ description: 'The period that is read.', override: { default: '24h' } }),
    app: textInQuery('Only requests to this app, by its id.', 63).optional(),
    ...TEAM_FILTER,
  }),
  answer: conformity,
  run: async ({ subject, query, principal }, management) => {
    const apps = await filteredApps(query, principal, management)
    const software = parseSoftware(JSON.parse(subject.document))
    const comparison = new RobotsCounts(software, management)
    const sinceMs = management.nowMs() - WINDOWS[query.window].lengthMs
    const filter = { apps, sinceMs, profile: { agent: subject.id } }
    const stoppedAtMs = await management.store.sightings.scan(filter, (row) => comparison.add(row))
    const { requests, estimated, robotsRequests, compared, disallowed } = comparison
    return {
      body: {
        agent_id: subject.id,
        window: query.window,
        robots_token: software.robotsToken,
        requests,
        estimated: Math.round(estimated),
        robots_requests: robotsRequests,
        compared: compared.requests,
        disallowed: disallowed.requests,
        share: compared.requests === 0 ? null : disallowed.estimated / compared.estimated,
        paths: comparison.paths(sightOf(principal)),
        stopped_at: timeOf(stoppedAtMs),
      },
    }
  },
})

export const AGENT_ROBOTS_OPERATIONS: readonly ApiOperation[] = [getAgentRobots]

interface DisallowedPath {
  readonly app: string
  readonly host: string | null
  readonly path: string
  readonly line: string
  requests: number
}

/** The requests of one agent, beside what each site tells it. Memory and time are bounded. */
class RobotsCounts {
  readonly #software: Software
  readonly #management: ApiContext
  readonly #nowMs: number
  readonly #policies = new Map<string, Policy>()
  /** By app, group of hosts and own file. `null`: unknown, or too long to compare. */
  readonly #files = new Map<string, RobotsTxt | null>()
  /** By app and host. */
  readonly #sites = new Map<string, RobotsTxt | null>()
  /** By site and path. `null`: allowed. */
  readonly #found = new Map<string, DisallowedPath | null>()
  requests = 0
  estimated = 0
  robotsRequests = 0
  readonly compared = { requests: 0, estimated: 0 }
  readonly disallowed = { requests: 0, estimated: 0 }

  constructor(software: Software, management: ApiContext) {
    this.#software = software
    this.#management = management
    this.#nowMs = management.nowMs()
  }

  add(row: ScannedRow): void {
    const weight = row.sampled === null ? 1 : 1 / row.sampled
    this.requests++
    this.estimated += weight
    if (row.path === ROBOTS_PATH) {
      this.robotsRequests++
      return
    }
    const robots = this.#robotsOf(row)
    if (robots === null) return
    this.compared.requests++
    this.compared.estimated += weight
    const found = this.#disallowing(robots, row)
    if (found === null) return
    found.requests++
    this.disallowed.requests++
    this.disallowed.estimated += weight
  }

  /** The paths with the most requests, as a principal of this sight sees them. */
  paths(sight: Sight): DisallowedPath[] {
    const shown = new Map<string, DisallowedPath>()
    for (const found of this.#found.values()) {
      if (found === null) continue
      const path = sight === 'full' ? found.path : shownPath(found.path)
      const key = JSON.stringify([found.app, found.host, path, found.line])
      const same = shown.get(key)
      if (same === undefined) shown.set(key, { ...found, path })
      else same.requests += found.requests
    }
    return [...shown.values()].sort((a, b) => b.requests - a.requests).slice(0, PATHS_SHOWN)
  }

  #disallowing(robots: RobotsTxt, { app, host, path }: ScannedRow): DisallowedPath | null {
    const key = JSON.stringify([app, host, path])
    const known = this.#found.get(key)
    if (known !== undefined) return known
    const line = robots.disallowing(this.#software.robotsToken!, path)
    const found = line === null ? null : { app, host, path, line, requests: 0 }
    if (this.#found.size < PATHS_MAX) this.#found.set(key, found)
    return found
  }

  #robotsOf({ app, host }: ScannedRow): RobotsTxt | null {
    if (this.#software.robotsToken === null) return null
    const key = JSON.stringify([app, host])
    const known = this.#sites.get(key)
    if (known !== undefined) return known
    // Clients can send any number of invented hosts.
    if (this.#sites.size === SITES_MAX) return null
    const robots = this.#fileOf(app, host)
    this.#sites.set(key, robots)
    return robots
  }

  #fileOf(app: string, host: string | null): RobotsTxt | null {
    const { isPublished, ownOf } = this.#management.robots()
    const own = ownOf(host)
    if (!isPublished && own === null) return null
    const policy = isPublished ? this.#policyOf(app) : null
    const key = JSON.stringify([policy === null ? null : app, policy && hostGroup(policy, host ?? ''), own])
    const known = this.#files.get(key)
    if (known !== undefined) return known
    if (this.#files.size === FILES_MAX) return null
    const robots = policy === null ? RobotsTxt.forPaths(own!) : this.#published(policy, host, own)
    const isShort = robots.rulesOf(this.#software.robotsToken!).length <= RULES_MAX
    this.#files.set(key, isShort ? robots : null)
    return isShort ? robots : null
  }

  #published(policy: Policy, host: string | null, own: string | null): RobotsTxt {
    const { names } = knowledgeOf(this.#management)
    const site = { own: own === '' ? null : own, host, nowMs: this.#nowMs }
    return publishedRobots(policy, { software: this.#software, names }, site)
  }

  #policyOf(app: string): Policy {
    const known = this.#policies.get(app)
    if (known !== undefined) return known
    const policy = policyFor(app, null, compiledInForce(null, this.#management), this.#management)
    if (this.#policies.size < FILES_MAX) this.#policies.set(app, policy)
    return policy
  }
}

const ROBOTS_PATH = '/robots.txt'
/** Different paths that are counted one by one. */
const PATHS_MAX = 20_000
const SITES_MAX = 1_000
/** Each takes some milliseconds to make. */
const FILES_MAX = 32
/** A path is compared with each of them. */
const RULES_MAX = 1_000
