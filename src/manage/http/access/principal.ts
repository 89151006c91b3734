/** Who calls, however it was proven. */
export interface Principal {
  /** Of the key, the client, the user; `local` for who has the command line. */
  readonly id: string
  readonly name: string
  readonly scopes: ReadonlySet<Scope>
  readonly plan: Plan
  /** `null`: never. */
  readonly expiresAtMs: number | null
}

export type Scope = (typeof SCOPES)[number]
export type Plan = (typeof PLANS)[number]
export type Access = keyof typeof ACCESS

export const SCOPES = ['read', 'detect', 'write', 'admin', 'mcp'] as const
export const PLANS = ['free', 'standard', 'unlimited'] as const

/** What an API key of each kind of access may do. */
export const ACCESS = {
  read: ['read', 'detect'],
  write: ['read', 'detect', 'write', 'mcp'],
  admin: ['admin'],
} as const satisfies Record<string, readonly Scope[]>

/** What this version does not know of gives nothing. */
export function knownScopes(names: readonly string[]): Scope[] {
  return SCOPES.filter((scope) => names.includes(scope))
}

export function knownPlan(name: string): Plan {
  return PLANS.find((plan) => plan === name) ?? 'free'
}

/** Where none is asked for. */
export function planFor(scopes: readonly Scope[]): Plan {
  return scopes.includes('admin') ? 'unlimited' : 'standard'
}

/** One of these is enough; `admin` has all. */
export function mayDo({ scopes }: Principal, anyOf: readonly Scope[]): boolean {
  return scopes.has('admin') || anyOf.some((scope) => scopes.has(scope))
}
