import { AGENT_OPERATIONS } from './agents.ts'
import { DETECT_OPERATIONS } from './detect.ts'
import { FEEDBACK_OPERATIONS } from './feedback.ts'
import { KEY_OPERATIONS } from './keys.ts'
import type { AnyOperation } from './operation.ts'
import { SIGNATURE_OPERATIONS } from './signatures.ts'
import { STATS_OPERATIONS } from './stats.ts'
import { SUBMISSION_OPERATIONS } from './submissions.ts'

/** All there is of /v1. */
export const OPERATIONS: readonly AnyOperation[] = [
  ...AGENT_OPERATIONS,
  ...DETECT_OPERATIONS,
  ...FEEDBACK_OPERATIONS,
  ...KEY_OPERATIONS,
  ...SIGNATURE_OPERATIONS,
  ...STATS_OPERATIONS,
  ...SUBMISSION_OPERATIONS,
]
