import type { AppScope } from '../../../apps/app-scope.ts'

/** The authenticated caller, whatever the credential was. */
export interface Principal {
  /** The id of the key, the client or the user; `local` on the command line. */
  readonly id: string
  readonly name: string
  readonly scopes: ReadonlySet<Scope>
  /** Limits every object that the principal may see and change, in addition to its scopes. */
  readonly apps: AppScope
  readonly plan: Plan
  /** `null`: never expires. */
  readonly expiresAtMs: number | null
}

export type Scope = (typeof SCOPES)[number]
export type Plan = (typeof PLANS)[number]
export type Access = keyof typeof ACCESS
export type Role = keyof typeof ROLES

export const SCOPES = ['read', 'detect', 'write', 'admin', 'mcp'] as const
export const PLANS = ['free', 'standard', 'unlimited'] as const

/** The scopes of an API key for each kind of access. */
export const ACCESS = {
  read: ['read', 'detect'],
  write: ['read', 'detect', 'write', 'mcp'],
  admin: ['admin'],
} as const satisfies Record<string, readonly Scope[]>

/** The scopes of each role. A role belongs to some apps or to all. */
export const ROLES = {
  viewer: ACCESS.read,
  editor: ACCESS.write,
  admin: ACCESS.admin,
} as const satisfies Record<string, readonly Scope[]>

/** Drops scopes that this version does not know: they grant nothing. */
export function knownScopes(names: readonly string[]): Scope[] {
  return SCOPES.filter((scope) => names.includes(scope))
}

export function knownPlan(name: string): Plan {
  return PLANS.find((plan) => plan === name) ?? 'free'
}

/** The plan if none is requested. */
export function planFor(scopes: readonly Scope[]): Plan {
  return scopes.includes('admin') ? 'unlimited' : 'standard'
}

/** True if the principal has one of these scopes, or `admin`. */
export function mayDo({ scopes }: Principal, anyOf: readonly Scope[]): boolean {
  return scopes.has('admin') || anyOf.some((scope) => scopes.has(scope))
}
