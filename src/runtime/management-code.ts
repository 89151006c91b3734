import type { Metrics } from '../shared/metrics.ts'

export type ManagementCode = Awaited<ReturnType<typeof managementCode>>

/**
 * Loads the code that a data plane alone does not need: the API with its schemas,
 * and databases. It takes 30 MiB.
 */
export async function managementCode() {
  const [{ OPERATION_IDS }, { ManagementPlane }, { PolicyKeeper }, { PolicyCopy }, keeper, copy, policies] =
    await Promise.all([
      import('../manage/api/operations.ts'),
      import('../manage/management-plane.ts'),
      import('../manage/publish/policy-keeper.ts'),
      import('../manage/publish/policy-copy.ts'),
      import('../manage/publish/app-keeper.ts'),
      import('../manage/publish/app-copy.ts'),
      import('../manage/publish/app-policies.ts'),
    ])
  const { AppKeeper } = keeper
  const { AppCopy } = copy
  const { AppPolicies, AppPolicyCopy } = policies
  return {
    OPERATION_IDS,
    ManagementPlane,
    PolicyKeeper,
    PolicyCopy,
    AppKeeper,
    AppCopy,
    AppPolicies,
    AppPolicyCopy,
  }
}

/** Koa and everything around it. */
export function portCode() {
  return import('./manage-port.ts')
}

export function addBuildInfo(
  metrics: Metrics,
  { version, configHash }: { readonly version: string; readonly configHash: string },
): void {
  metrics.gauge('build_info', 'The version of the program.', 'first', () => [
    { labels: { version, node: process.versions.node }, value: 1 },
  ])
  const hash = 'The first 48 bits of the SHA-256 of the settings in force, without secrets.'
  metrics.gauge('config_hash', hash, 'first', () => [
    { labels: {}, value: Number.parseInt(configHash.slice(0, HASH_SHOWN), 16) },
  ])
}

/** 48 bits: exact in a JavaScript number. */
const HASH_SHOWN = 12
