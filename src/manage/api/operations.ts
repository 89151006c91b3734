import { toolsOf } from '../tool-list.ts'
import { AGENT_OPERATIONS } from './agents.ts'
import { AUDIT_OPERATIONS } from './audit.ts'
import { DETECT_OPERATIONS } from './detect.ts'
import { KEY_OPERATIONS } from './keys.ts'
import type { AnyOperation } from './operation.ts'
import { POLICY_OPERATIONS } from './policy.ts'
import { SIGNATURE_OPERATIONS } from './signatures.ts'
import { STATS_OPERATIONS } from './stats.ts'
import { toolOperations } from './tools.ts'
import { WEBHOOK_OPERATIONS } from './webhooks.ts'

/** What tools can be made of. */
const FOR_ALL: readonly AnyOperation[] = [
  ...DETECT_OPERATIONS,
  ...AGENT_OPERATIONS,
  ...SIGNATURE_OPERATIONS,
  ...STATS_OPERATIONS,
]

/** For `/execute`, MCP and A2A. */
export const TOOLS = toolsOf(FOR_ALL)

/** All there is of /v1. */
export const OPERATIONS: readonly AnyOperation[] = [
  ...FOR_ALL,
  ...toolOperations(TOOLS),
  ...KEY_OPERATIONS,
  ...AUDIT_OPERATIONS,
  ...POLICY_OPERATIONS,
  ...WEBHOOK_OPERATIONS,
]

export const OPERATION_IDS: readonly string[] = OPERATIONS.map(({ id }) => id)
