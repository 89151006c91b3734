import type { AnyOperation } from './operation.ts'

/** The operations under one version prefix. */
export interface ApiVersion {
  readonly prefix: `/${VersionName}`
  readonly isBeta: boolean
  readonly operations: readonly AnyOperation[]
}

export type VersionName = 'v1' | 'v2'

/** An operation that differs between versions. */
export type Versioned = Readonly<Record<VersionName, AnyOperation>>

/** Offered in every version. */
export type Offered = AnyOperation | Versioned

export function inVersion(offered: readonly Offered[], name: VersionName): readonly AnyOperation[] {
  return offered.map((each) => ('v1' in each ? each[name] : each))
}
