import type { AnyOperation } from './operation.ts'

/** The operations under one version prefix. */
export interface ApiVersion<Context = never> {
  readonly prefix: `/${VersionName}`
  readonly isBeta: boolean
  readonly operations: readonly AnyOperation<Context>[]
}

type VersionName = 'v1' | 'v2'

/** An operation that differs between versions. */
export type Versioned<Context> = Readonly<Record<VersionName, AnyOperation<Context>>>

/** Offered in every version. */
export type Offered<Context> = AnyOperation<Context> | Versioned<Context>

export function inVersion<Context>(
  offered: readonly Offered<Context>[],
  name: VersionName,
): readonly AnyOperation<Context>[] {
  return offered.map((each) => ('v1' in each ? each[name] : each))
}
