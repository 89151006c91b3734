import type { AppList } from '../../../apps/app-scope.ts'
import { ROLES, type Role, type Scope } from '../../http/access/principal.ts'

/** Decides the access of people by what their provider says about them. */
export interface RoleSettings {
  /** The claim that has the values. */
  readonly claim: string
  /** A scope to request for it; `null`: none. */
  readonly scope: string | null
  /** The first entry whose value a person has decides. */
  readonly list: readonly GivenRole[]
}

interface GivenRole {
  readonly value: string
  readonly role: Role
  readonly apps: AppList
}

export interface RoleAccess {
  readonly scopes: readonly Scope[]
  readonly apps: AppList
}

/** `null`: none of the values has a role. */
export function accessFor(values: readonly string[], { list }: RoleSettings): RoleAccess | null {
  const given = list.find(({ value }) => values.includes(value))
  return given === undefined ? null : { scopes: ROLES[given.role], apps: given.apps }
}
