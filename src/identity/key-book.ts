import { LRUCache } from 'lru-cache'
import { type AgentKey, readAgentKey } from './agent-key.ts'
import type { Finding } from './inquiry.ts'

/** What a worker knows of an agent's keys. */
export interface KnownKeys {
  readonly byThumbprint: ReadonlyMap<string, AgentKey>
  readonly why: string | null
  readonly askAgainMs: number
  readonly freshUntilMs: number
  readonly untilMs: number
}

type KeyFinding = Finding & { readonly kind: 'keys' }

/** The keys of agents, as they were found out; bounded, and of strangers apart, who come in any number. */
export class KeyBook {
  readonly #listed = new Map<string, KnownKeys>()
  readonly #strangers = new LRUCache<string, KnownKeys>({ max: STRANGERS_MAX })
  readonly #waiting = new Map<string, Set<() => void>>()
  #isListed: (agentId: string) => boolean = () => false

  /** Who is no stranger. Those who were and are no more become strangers. */
  list(agentIds: ReadonlySet<string>): void {
    this.#isListed = (agentId) => agentIds.has(agentId)
    for (const agentId of this.#listed.keys()) if (!agentIds.has(agentId)) this.#listed.delete(agentId)
  }

  isListed(agentId: string): boolean {
    return this.#isListed(agentId)
  }

  take(finding: KeyFinding): void {
    const { agentId, keys, why, askAgainMs, freshUntilMs, untilMs } = finding
    const byThumbprint = new Map<string, AgentKey>()
    for (const jwk of keys.slice(0, KEYS_MAX)) {
      // Who has fetched it has decided which keys are to be taken.
      const read = readAgentKey(jwk, true)
      if (read.kind === 'key') byThumbprint.set(read.key.thumbprint, read.key)
    }
    const known = { byThumbprint, why, askAgainMs, freshUntilMs, untilMs }
    if (this.#isListed(agentId)) this.#listed.set(agentId, known)
    else this.#strangers.set(agentId, known)
    const waiting = this.#waiting.get(agentId)
    this.#waiting.delete(agentId)
    for (const go of waiting ?? []) go()
  }

  /** `null`: nothing is known, or nothing any more. */
  of(agentId: string, nowMs: number): KnownKeys | null {
    const known = this.#listed.get(agentId) ?? this.#strangers.get(agentId)
    return known === undefined || known.untilMs <= nowMs ? null : known
  }

  /** Calls when something of it comes in, once. What is returned calls that off. */
  wait(agentId: string, go: () => void): () => void {
    const waiting = this.#waiting.get(agentId) ?? new Set()
    this.#waiting.set(agentId, waiting.add(go))
    return () => {
      waiting.delete(go)
      if (waiting.size === 0 && this.#waiting.get(agentId) === waiting) this.#waiting.delete(agentId)
    }
  }
}

const STRANGERS_MAX = 2_000
/** Of a directory. */
const KEYS_MAX = 32
