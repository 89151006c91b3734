import { Refusal } from '../refusal.ts'
import { challenge } from './challenge.ts'
import type { Resource } from './resources.ts'
import { mayDo, type Principal, type Scope } from './principal.ts'

/** The scopes that a call needs: at least one of each inner list. `admin` satisfies every list. */
export type Needs = readonly (readonly Scope[])[]

/**
 * Needs that are read from the request before it is validated. `what` names the thing that has them, for
 * messages.
 */
export interface NamedNeeds {
  readonly what: string
  readonly needs: Needs
}

export function mayDoAll(principal: Principal, needs: Needs): boolean {
  return needs.every((anyOf) => mayDo(principal, anyOf))
}

/** Few scopes that satisfy all needs. Where there is a choice: one that is `held`, otherwise the first. */
export function leastScopes(needs: Needs, held: ReadonlySet<Scope> = NONE): readonly Scope[] {
  const chosen = new Set<Scope>()
  // A list of one leaves no choice, and its scope may satisfy other lists.
  for (const anyOf of needs) if (anyOf.length === 1) chosen.add(anyOf[0]!)
  for (const anyOf of needs) {
    if (anyOf.length === 0 || anyOf.some((scope) => chosen.has(scope))) continue
    chosen.add(anyOf.find((scope) => held.has(scope)) ?? anyOf[0]!)
  }
  return [...chosen]
}

/**
 * A 403 that names every scope of the call in its challenge, so a single new token is enough. The scopes that
 * the caller already has follow them: a client that requests exactly these scopes loses none, and does not
 * alternate between two tokens.
 */
export function insufficientScope(
  { what, needs }: NamedNeeds,
  { scopes: held }: Principal,
  publicUrl: string,
  resource: Resource = 'v1',
): Refusal {
  const wanted = new Set([...leastScopes(needs, held), ...held])
  return new Refusal('insufficient_scope', `${what} needs ${needsText(needs)}`, {
    headers: { 'WWW-Authenticate': challenge(publicUrl, 'insufficient_scope', resource, [...wanted]) },
  })
}

/** `the scope mcp`, `the scopes mcp and read`, `the scopes mcp and (read or detect)`. */
function needsText(needs: Needs): string {
  if (needs.length === 1) return `the scope ${needs[0]!.join(' or ')}`
  return `the scopes ${needs.map((anyOf) => (anyOf.length > 1 ? `(${anyOf.join(' or ')})` : anyOf[0])).join(' and ')}`
}

const NONE: ReadonlySet<Scope> = new Set()
