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
  readonly #strangers = new LRUCache<string, KnownKeys>({
    ...{ max: STRANGERS_MAX, maxSize: STRANGERS_KEYS_MAX },
    sizeCalculation: ({ byThumbprint }) => byThumbprint.size + 1,
  })
  readonly #waiting = new Map<string, Set<() => void>>()
  readonly #takesStrangers: boolean
  #isListed: (agentId: string) => boolean = () => false

  constructor(takesStrangers = true) {
    this.#takesStrangers = takesStrangers
  }

  /** Who is no stranger. What is known of those who become one, or cease to be one, is forgotten. */
  list(agentIds: ReadonlySet<string>): void {
    this.#isListed = (agentId) => agentIds.has(agentId)
    for (const agentId of this.#listed.keys()) if (!agentIds.has(agentId)) this.#listed.delete(agentId)
    for (const agentId of agentIds) this.#strangers.delete(agentId)
  }

  isListed(agentId: string): boolean {
    return this.#isListed(agentId)
  }

  take(finding: KeyFinding): void {
    const { agentId, askAgainMs, freshUntilMs, untilMs } = finding
    const isListed = this.#isListed(agentId)
    // Others may not know yet that it is listed no more.
    const { keys, why } = isListed || this.#takesStrangers ? finding : NOT_LISTED
    const byThumbprint = new Map<string, AgentKey>()
    for (const jwk of keys.slice(0, KEYS_MAX)) {
      // Who has fetched it has decided which keys are to be taken.
      const read = readAgentKey(jwk, true)
      if (read.kind === 'key') byThumbprint.set(read.key.thumbprint, read.key)
    }
    const known = { byThumbprint, why, askAgainMs, freshUntilMs, untilMs }
    if (isListed) this.#listed.set(agentId, known)
    else this.#strangers.set(agentId, known)
    const waiting = this.#waiting.get(agentId)
    this.#waiting.delete(agentId)
    if (waiting !== undefined) wake(waiting)
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

/** One after the other: each has a signature checked, and other requests want their turn in between. */
function wake(waiting: Set<() => void>): void {
  const [go] = waiting
  if (go === undefined) return
  waiting.delete(go)
  go()
  if (waiting.size > 0) setImmediate(wake, waiting)
}

const NOT_LISTED = { keys: [], why: 'not-listed' } as const
const STRANGERS_MAX = 2_000
/** A key takes a few kilobytes. */
const STRANGERS_KEYS_MAX = 4_096
/** Of a directory. */
const KEYS_MAX = 32
