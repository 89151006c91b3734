import { DETECT_OPERATIONS } from './detect.ts'
import { FEEDBACK_OPERATIONS } from './feedback.ts'
import { KEY_OPERATIONS } from './keys.ts'
import type { AnyOperation } from './operation.ts'
import { SUBMISSION_OPERATIONS } from './submissions.ts'

/** All there is of /v1. */
export const OPERATIONS: readonly AnyOperation[] = [
  ...DETECT_OPERATIONS,
  ...FEEDBACK_OPERATIONS,
  ...KEY_OPERATIONS,
  ...SUBMISSION_OPERATIONS,
]
