import type { SignerFacts } from '../../classify/verdict/proof.ts'
import { LateCache } from '../../shared/late-cache.ts'
import { type AddressRange, AddressRanges, parseAddressRange } from '../../wire/address-ranges.ts'
import { type AgentKey, readAgentKey } from './agent-key.ts'
import { type InquiryResult, sizeOf } from './inquiry.ts'

/** What a worker knows about an agent's keys. */
export interface KnownKeys {
  readonly byThumbprint: ReadonlyMap<string, AgentKey>
  /** The issuer whose keys they are; `null`: they are those of the document itself. */
  readonly issuer: string | null
  /** What is published about the agent; `null`: nothing. */
  readonly about: SignerFacts | null
  /** As sizeOf counts. */
  readonly size: number
  readonly why: string | null
  readonly askAgainMs: number
  readonly freshUntilMs: number
  readonly untilMs: number
}

type KeyFinding = InquiryResult & { readonly kind: 'keys' }

/** Known keys of agents. Bounded; strangers are stored apart, because there can be any number of them. */
export class KeyBook {
  readonly #listed = new Map<string, KnownKeys>()
  readonly #strangers = new LateCache<KnownKeys>({
    max: STRANGERS_MAX,
    maxSize: STRANGERS_KEYS_MAX,
    sizeCalculation: ({ size }) => size,
  })
  readonly #waiting = new Map<string, Set<() => void>>()
  readonly #takesStrangers: boolean
  #isListed: (agentId: string) => boolean = () => false

  constructor(takesStrangers = true) {
    this.#takesStrangers = takesStrangers
  }

  /** Sets the listed agents. Cached keys of agents that become listed or unlisted are dropped. */
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
    // Another process may not know yet that the agent is no longer listed.
    const isTaken = isListed || this.#takesStrangers || finding.registries.length > 0
    const { keys, why } = isTaken ? finding : NOT_LISTED
    const byThumbprint = new Map<string, AgentKey>()
    for (const jwk of keys.slice(0, KEYS_MAX)) {
      // The process that fetched the keys has already decided which ones to accept.
      const read = readAgentKey(jwk, true)
      if (read.kind === 'key') byThumbprint.set(read.key.thumbprint, read.key)
    }
    const known = {
      byThumbprint,
      issuer: finding.issuer ?? null,
      about: isTaken ? factsOf(finding) : null,
      size: sizeOf(finding),
      why,
      askAgainMs,
      freshUntilMs,
      untilMs,
    }
    if (isListed) this.#listed.set(agentId, known)
    else this.#strangers.set(agentId, known)
    const waiting = this.#waiting.get(agentId)
    this.#waiting.delete(agentId)
    if (waiting !== undefined) wake(waiting)
  }

  /** `null`: unknown or expired. */
  of(agentId: string, nowMs: number): KnownKeys | null {
    const known = this.#listed.get(agentId) ?? this.#strangers.get(agentId)
    return known === undefined || known.untilMs <= nowMs ? null : known
  }

  /** Calls `go` once when a finding for the agent arrives. Returns a function that cancels the wait. */
  wait(agentId: string, go: () => void): () => void {
    const waiting = this.#waiting.get(agentId) ?? new Set()
    this.#waiting.set(agentId, waiting.add(go))
    return () => {
      waiting.delete(go)
      if (waiting.size === 0 && this.#waiting.get(agentId) === waiting) this.#waiting.delete(agentId)
    }
  }
}

function factsOf({ card, registries, ranges }: KeyFinding): SignerFacts | null {
  if (card === null && registries.length === 0) return null
  return { card, registries, ranges: ranges === null ? null : compiled(ranges) }
}

function compiled(texts: readonly string[]): AddressRanges {
  return new AddressRanges(
    texts.map(parseAddressRange).filter((range): range is AddressRange => range !== null),
  )
}

/** Wakes one waiter at a time: each verifies a signature, and other requests run in between. */
function wake(waiting: Set<() => void>): void {
  const [go] = waiting
  if (go === undefined) return
  waiting.delete(go)
  go()
  if (waiting.size > 0) setImmediate(wake, waiting)
}

const NOT_LISTED = { keys: [], why: 'not-listed' } as const
const STRANGERS_MAX = 2_000
/** A key takes some kilobytes. */
const STRANGERS_KEYS_MAX = 4_096
/** Keys per directory. */
const KEYS_MAX = 32
