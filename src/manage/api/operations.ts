import { AUDIT_OPERATIONS } from './audit.ts'
import { KEY_OPERATIONS } from './keys.ts'
import type { AnyOperation } from './operation.ts'

/** All there is of /v1. */
export const OPERATIONS: readonly AnyOperation[] = [...KEY_OPERATIONS, ...AUDIT_OPERATIONS]

export const OPERATION_IDS: readonly string[] = OPERATIONS.map(({ id }) => id)
