import { Refusal } from '../refusal.ts'
import { challenge } from './challenge.ts'
import type { Resource } from './resources.ts'
import { mayDo, type Principal, type Scope } from './principal.ts'

/** The scopes of a call: at least one of each list. `admin` stands for any of them. */
export type Needs = readonly (readonly Scope[])[]

/** Needs that are known from what was sent, before anything of it was checked. `what`: the thing that has them, in words. */
export interface NamedNeeds {
  readonly what: string
  readonly needs: Needs
}

export function mayDoAll(principal: Principal, needs: Needs): boolean {
  return needs.every((anyOf) => mayDo(principal, anyOf))
}

/** The fewest scopes with which all of this may be done; where there is a choice, one that is `held`, else the first. */
export function leastScopes(needs: Needs, held: ReadonlySet<Scope> = NONE): readonly Scope[] {
  const chosen = new Set<Scope>()
  // A list of one leaves no choice, and its scope may satisfy others.
  for (const anyOf of needs) if (anyOf.length === 1) chosen.add(anyOf[0]!)
  for (const anyOf of needs) {
    if (anyOf.length === 0 || anyOf.some((scope) => chosen.has(scope))) continue
    chosen.add(anyOf.find((scope) => held.has(scope)) ?? anyOf[0]!)
  }
  return [...chosen]
}

/**
 * 403, with every scope of the call in the challenge, so that one new token is enough. Scopes that the caller has already
 * follow them: a client that asks for exactly these loses nothing, and does not go to and fro between two tokens.
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
