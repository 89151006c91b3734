import { LRUCache } from 'lru-cache'
import type { TrustKind, TrustRecord, TrustStore } from '../../store/people/trust.ts'
import { knownPlan, knownScopes, type Plan, type Scope } from '../http/access/principal.ts'

/** What somebody may do who has proven who he is. */
export interface Trusted {
  /** Of the entry. */
  readonly id: string
  readonly name: string | null
  readonly scopes: ReadonlySet<Scope>
  readonly plan: Plan
  /** An agent's, where an administrator has given it; it is the same as long as the id is. */
  readonly document: Readonly<Record<string, unknown>> | null
}

/** Knows what agents and keys may do, and remembers it for so short that what is deleted is out within a second. */
export class Trust {
  readonly #store: TrustStore
  readonly #nowMs: () => number
  readonly #known = new LRUCache<string, Known>({ max: KNOWN_MAX })

  constructor(store: TrustStore, nowMs: () => number) {
    this.#store = store
    this.#nowMs = nowMs
  }

  /** `id`: its URL. `null`: nobody has said anything about it. */
  scopesOfAgent(id: string): Promise<Trusted | null> {
    return this.#of('agent', id)
  }

  /** Of a key by its RFC 7638 thumbprint. */
  scopesOfKey(thumbprint: string): Promise<Trusted | null> {
    return this.#of('key', thumbprint)
  }

  /** After a change made here, which is then in force at once. */
  forget(): void {
    this.#known.clear()
  }

  async #of(kind: TrustKind, subject: string): Promise<Trusted | null> {
    const nowMs = this.#nowMs()
    const name = `${kind} ${subject}`
    const known = this.#known.get(name)
    if (known !== undefined && nowMs - known.atMs < REMEMBERED_MS) return known.trusted
    const record = await this.#store.of(kind, subject)
    const trusted = record === null || !isOfNow(record, nowMs) ? null : trustedOf(record)
    this.#known.set(name, { trusted, atMs: nowMs })
    return trusted
  }
}

/** A key is good for as long as it says itself. Those of an agent are looked at one by one, where one of them is used. */
function isOfNow({ kind, document }: TrustRecord, nowMs: number): boolean {
  if (kind === 'agent' || document === null) return true
  const { nbf, exp } = document
  const isEarly = typeof nbf === 'number' && nowMs < nbf * 1000
  return !isEarly && !(typeof exp === 'number' && nowMs >= exp * 1000)
}

interface Known {
  readonly trusted: Trusted | null
  readonly atMs: number
}

function trustedOf({ id, name, scopes, plan, document }: TrustRecord): Trusted {
  return { id, name, scopes: new Set(knownScopes(scopes)), plan: knownPlan(plan), document }
}

const REMEMBERED_MS = 500
const KNOWN_MAX = 10_000
