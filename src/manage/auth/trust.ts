import { type AppScope, appScopeOf } from '../../apps/app-scope.ts'
import { LateCache } from '../../shared/late-cache.ts'
import type { TrustKind, TrustRecord, TrustStore } from '../../store/people/trust.ts'
import { knownPlan, knownScopes, type Plan, type Scope } from '../http/access/principal.ts'

/** The access of an agent or a key that has proven its identity. */
export interface Trusted {
  /** The id of the trust entry. */
  readonly id: string
  readonly name: string | null
  readonly scopes: ReadonlySet<Scope>
  readonly apps: AppScope
  readonly plan: Plan
  /** An agent's document, if an administrator supplied it. Immutable for one entry id. */
  readonly document: Readonly<Record<string, unknown>> | null
}

/**
 * Looks up the access of agents and keys. Caches it for 500 ms, so that a deleted entry stops working within
 * a second.
 */
export class Trust {
  readonly #store: TrustStore
  readonly #nowMs: () => number
  readonly #known = new LateCache<CachedTrust>({ max: KNOWN_MAX })

  constructor(store: TrustStore, nowMs: () => number) {
    this.#store = store
    this.#nowMs = nowMs
  }

  /** `id`: the agent's URL. `null`: no entry exists. */
  scopesOfAgent(id: string): Promise<Trusted | null> {
    return this.#of('agent', id)
  }

  /** By the key's RFC 7638 thumbprint. */
  scopesOfKey(thumbprint: string): Promise<Trusted | null> {
    return this.#of('key', thumbprint)
  }

  /** Clears the cache after a change in this process, so that the change takes effect at once. */
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

/** A key is valid only within its own nbf and exp. An agent's keys are checked one by one when used. */
function isOfNow({ kind, document }: TrustRecord, nowMs: number): boolean {
  if (kind === 'agent' || document === null) return true
  const { nbf, exp } = document
  const isEarly = typeof nbf === 'number' && nowMs < nbf * 1000
  return !isEarly && !(typeof exp === 'number' && nowMs >= exp * 1000)
}

interface CachedTrust {
  readonly trusted: Trusted | null
  readonly atMs: number
}

function trustedOf({ id, name, scopes, apps, plan, document }: TrustRecord): Trusted {
  const access = { scopes: new Set(knownScopes(scopes)), apps: appScopeOf(apps), plan: knownPlan(plan) }
  return { id, name, ...access, document }
}

const REMEMBERED_MS = 500
const KNOWN_MAX = 10_000
