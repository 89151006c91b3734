import { readFile } from 'node:fs/promises'
import { LRUCache } from 'lru-cache'
import type { Knowledge } from '../../classify/knowledge.ts'
import type { Log } from '../../log.ts'
import { RobotsTxt } from './robots-txt.ts'
import type { RobotsRules } from './rule.ts'

export interface RobotsSettings {
  /** The robots.txt of all hosts; `null`: none is known. */
  readonly file: string | null
}

/** What robots.txt asks for, as last read. What cannot be read any more stays as it was. */
export class RobotsFiles implements RobotsRules {
  readonly #settings: RobotsSettings
  readonly #log: Log
  readonly #knowledge: () => Knowledge | null
  #text: string | null = null
  #robots: RobotsTxt | null = null
  #isFailing = false
  /** By agent and path: a crawler that disregards one line does it often. */
  readonly #answers = new LRUCache<string, { readonly line: string | null }>({ max: ANSWERS_MAX })
  #tokens: { readonly of: Knowledge; readonly byAgent: ReadonlyMap<string, string> } | null = null

  constructor(settings: RobotsSettings, knowledge: () => Knowledge | null, log: Log) {
    this.#settings = settings
    this.#knowledge = knowledge
    this.#log = log
  }

  disallowing(agent: string, _host: string | null, path: string): string | null {
    const token = this.#robots === null ? null : this.#tokenOf(agent)
    if (token === null) return null
    const key = `${token} ${path}`
    const known = this.#answers.get(key)
    if (known !== undefined) return known.line
    const line = this.#robots!.disallowing(token, path)
    this.#answers.set(key, { line })
    return line
  }

  /** Reads it anew. */
  async read(): Promise<void> {
    const { file } = this.#settings
    if (file === null) return
    try {
      const text = await readFile(file, 'utf8')
      this.#isFailing = false
      if (text === this.#text) return
      this.#text = text
      this.#robots = RobotsTxt.parse(text)
      this.#answers.clear()
    } catch (error) {
      if (!this.#isFailing) this.#log.warn('robots.txt cannot be read', { file, error: error as Error })
      this.#isFailing = true
    }
  }

  /** An agent without a token of its own is asked for nothing by name, and may not read what is for all others. */
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

const ANSWERS_MAX = 4_096
