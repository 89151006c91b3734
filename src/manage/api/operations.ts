import { DETECT_OPERATIONS } from './detect.ts'
import { KEY_OPERATIONS } from './keys.ts'
import type { AnyOperation } from './operation.ts'

/** All there is of /v1. */
export const OPERATIONS: readonly AnyOperation[] = [...DETECT_OPERATIONS, ...KEY_OPERATIONS]
