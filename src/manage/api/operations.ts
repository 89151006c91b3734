import { AUDIT_OPERATIONS } from './audit.ts'
import { KEY_OPERATIONS } from './keys.ts'
import type { AnyOperation } from './operation.ts'
import { STATS_OPERATIONS } from './stats.ts'

/** All there is of /v1. */
export const OPERATIONS: readonly AnyOperation[] = [
  ...KEY_OPERATIONS,
  ...AUDIT_OPERATIONS,
  ...STATS_OPERATIONS,
]
