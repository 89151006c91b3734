import { readFile } from 'node:fs/promises'
import { LRUCache } from 'lru-cache'
import type { Knowledge } from '../../../classify/known/knowledge.ts'
import type { Log } from '../../../shared/log.ts'
import { RobotsTxt } from './robots-txt.ts'
import { canAsk, type RobotsUpstream, robotsFrom } from './robots-upstream.ts'
import type { RobotsRules } from './rule.ts'

export interface RobotsSettings {
  /** The robots.txt of all hosts; `null`: there is no such file. */
  readonly file: string | null
  /** The app, which is asked where there is no file; `null`: it is not. */
  readonly upstream: RobotsUpstream | null
}

/** Whether anybody can know what robots.txt asks for. */
export function isRobotsKnown({ file, upstream }: RobotsSettings): boolean {
  return file !== null || (upstream !== null && canAsk(upstream))
}

/**
 * What robots.txt asks for, as last read: on the side, and of a few hosts that crawlers have asked for. What cannot be read
 * any more stays as it was.
 */
export class RobotsFiles implements RobotsRules {
  readonly #settings: RobotsSettings
  readonly #log: Log
  readonly #knowledge: () => Knowledge | null
  /** By host; what is the same for all of them is under one name. */
  readonly #read = new LRUCache<string, Read>({ max: HOSTS_MAX })
  readonly #isPerHost: boolean
  #isFailing = false
  /** By host, agent and path: a crawler that disregards one line does it often. */
  readonly #answers = new LRUCache<string, { readonly line: string | null }>({ max: ANSWERS_MAX })
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

  /** Reads some of those anew whose time has come. */
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
          : await readFile(file, 'utf8')
      this.#isFailing = false
      read.nextAtMs = file === null ? nowMs + UPSTREAM_MS : nowMs
      if (text === read.text) return
      read.text = text
      read.robots = RobotsTxt.parse(text)
      this.#answers.clear()
    } catch (error) {
      read.nextAtMs = nowMs + RETRY_MS
      if (!this.#isFailing) this.#log.warn('robots.txt cannot be read', { file, error: error as Error })
      this.#isFailing = true
    }
  }

  /** One that nobody has asked for before is read soon. */
  #of(host: string | null): RobotsTxt | null {
    if (!this.#isPerHost) return this.#read.get(ALL_HOSTS)!.robots
    if (host === null || !HOST.test(host)) return null
    const name = host.toLowerCase()
    const read = this.#read.get(name)
    if (read === undefined) this.#read.set(name, { ...UNREAD })
    return read?.robots ?? null
  }

  /** One without a token of its own is not told what it is asked for, and is held to nothing. */
  #tokenOf(agent: string): string | null {
    const knowledge = this.#knowledge()
    if (knowledge === null) return null
    if (this.#tokens?.of !== knowledge) {
      const named = knowledge.list.filter(({ robotsToken }) => robotsToken !== null)
      this.#tokens = {
        of: knowledge,
        byAgent: new Map(named.map(({ id, robotsToken }) => [id, robotsToken!])),
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
/** Half a megabyte each at most. Whoever names more pushes out what was named longest ago. */
const HOSTS_MAX = 32
const AT_ONCE = 4
const ANSWERS_MAX = 4_096
const UPSTREAM_MS = 3_600_000
const RETRY_MS = 60_000
