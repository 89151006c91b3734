import { LRUCache } from 'lru-cache'
import type { Knowledge } from '../../../classify/known/knowledge.ts'
import type { Log } from '../../../shared/log.ts'
import { productToken, RobotsTxt } from '../../../terms/robots-txt.ts'
import { canAsk, type RobotsUpstream, robotsFrom } from './robots-upstream.ts'
import type { RobotsRules } from './rule.ts'
import { readBoundedText } from '../../../shared/bounded-file.ts'
import { LateCache } from '../../../shared/late-cache.ts'

export interface RobotsSettings {
  /** The robots.txt of all hosts; `null`: no file is configured. */
  readonly file: string | null
  /** The upstream, which is asked if there is no file; `null`: it is not asked. */
  readonly upstream: RobotsUpstream | null
  /** Whether proxies answer `/robots.txt` with what the policy allows. */
  readonly isPublished: boolean
}

/** Whether the content of robots.txt can be known. */
export function isRobotsKnown({ file, upstream }: RobotsSettings): boolean {
  return file !== null || (upstream !== null && canAsk(upstream))
}

/**
 * The rules of robots.txt as last read. They are read in the background, for a limited number of hosts that
 * crawlers have requested. If a later read fails, the earlier content stays in force.
 */
export class RobotsFiles implements RobotsRules {
  readonly #settings: RobotsSettings
  readonly #log: Log
  readonly #knowledge: () => Knowledge | null
  /** By host. If all hosts share one file, it is under `ALL_HOSTS`. */
  readonly #read = new LRUCache<string, Read>({ max: HOSTS_MAX })
  readonly #isPerHost: boolean
  #isFailing = false
  /** By host, agent and path: a crawler that ignores one line usually does so often. */
  readonly #answers = new LateCache<{ readonly line: string | null }>({ max: ANSWERS_MAX })
  #tokens: { readonly of: Knowledge; readonly byAgent: ReadonlyMap<string, string> } | null = null

  constructor(settings: RobotsSettings, knowledge: () => Knowledge | null, log: Log) {
    this.#settings = settings
    this.#knowledge = knowledge
    this.#log = log
    this.#isPerHost = settings.file === null && settings.upstream?.host === 'preserve'
    if (!this.#isPerHost) this.#read.set(ALL_HOSTS, { ...UNREAD })
  }

  disallowing(agent: string, host: string | null, path: string): string | null {
    const token = this.#tokenOf(agent)
    const robots = token === null ? null : this.#of(host)
    if (token === null || robots === null) return null
    const key = `${this.#isPerHost ? host : ALL_HOSTS} ${token} ${path}`
    const known = this.#answers.get(key)
    if (known !== undefined) return known.line
    const line = robots.disallowing(token, path)
    this.#answers.set(key, { line })
    return line
  }

  /** The app's own file, as last read; `null`: unknown. Does not ask for files of further hosts. */
  textOf(host: string | null): string | null {
    const name = this.#isPerHost ? (host ?? '').toLowerCase() : ALL_HOSTS
    return this.#read.peek(name)?.text ?? null
  }

  /** Re-reads some of the files that are due. */
  async refresh(nowMs: number): Promise<void> {
    const due = [...this.#read].filter(([, { nextAtMs }]) => nextAtMs <= nowMs).slice(0, AT_ONCE)
    await Promise.all(due.map(([host, read]) => this.#refresh(host, read, nowMs)))
  }

  async #refresh(host: string, read: Read, nowMs: number): Promise<void> {
    const { file, upstream } = this.#settings
    try {
      const text =
        file === null
          ? await robotsFrom(upstream!, host === ALL_HOSTS ? null : host)
          : await readBoundedText(file)
      this.#isFailing = false
      read.nextAtMs = file === null ? nowMs + UPSTREAM_MS : nowMs
      if (text === read.text) return
      read.text = text
      read.robots = RobotsTxt.forPaths(text)
      this.#answers.clear()
    } catch (error) {
      read.nextAtMs = nowMs + RETRY_MS
      if (!this.#isFailing) this.#log.warn('robots.txt cannot be read', { file, error: error as Error })
      this.#isFailing = true
    }
  }

  /** The file of a host that is new here is read at the next refresh. */
  #of(host: string | null): RobotsTxt | null {
    if (!this.#isPerHost) return this.#read.get(ALL_HOSTS)!.robots
    if (host === null || !HOST.test(host)) return null
    const name = host.toLowerCase()
    const read = this.#read.get(name)
    if (read === undefined) this.#read.set(name, { ...UNREAD })
    return read?.robots ?? null
  }

  /** An agent without a token of its own cannot be addressed by robots.txt, so no rule applies to it. */
  #tokenOf(agent: string): string | null {
    const knowledge = this.#knowledge()
    if (knowledge === null) return null
    if (this.#tokens?.of !== knowledge) {
      const named = knowledge.list.filter(({ robotsToken }) => robotsToken !== null)
      this.#tokens = {
        of: knowledge,
        byAgent: new Map(named.map(({ id, robotsToken }) => [id, productToken(robotsToken!)])),
      }
      this.#answers.clear()
    }
    return this.#tokens.byAgent.get(agent) ?? null
  }
}

interface Read {
  text: string | null
  robots: RobotsTxt | null
  nextAtMs: number
}

const UNREAD: Read = { text: null, robots: null, nextAtMs: 0 }
const ALL_HOSTS = '*'
const HOST = /^[\w.-]+(?::\d+)?$|^\[[\da-f:.]+\](?::\d+)?$/i
/** At most 0.5 MB each. Further hosts evict the least recently used ones. */
const HOSTS_MAX = 32
const AT_ONCE = 4
const ANSWERS_MAX = 4_096
const UPSTREAM_MS = 3_600_000
const RETRY_MS = 60_000
