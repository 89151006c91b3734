import { ANALYZE_CAPTURE } from './capture-task.ts'
import { taskTypesOf } from '../jobs/task-types.ts'
import { toolsOf } from './tool-list.ts'
import { AGENT_CARD_OPERATIONS } from './agent-card.ts'
import { AGENT_FINGERPRINT_OPERATIONS } from './agent-fingerprints.ts'
import { AGENT_ROBOTS_OPERATIONS } from './agent-robots.ts'
import { AGENT_RULE_OPERATIONS } from './agent-rules.ts'
import { AGENT_STATS_OPERATIONS } from './agent-stats.ts'
import { AGENT_OPERATIONS } from './agents.ts'
import { APP_OPERATIONS } from './apps.ts'
import { APP_POLICY_OPERATIONS } from './app-policy.ts'
import { AUDIT_OPERATIONS } from './audit.ts'
import { CAMPAIGN_OPERATIONS } from './campaigns.ts'
import { CASE_OPERATIONS } from './cases.ts'
import { CLIENT_OPERATIONS } from './clients.ts'
import { DELIVERY_OPERATIONS } from './deliveries.ts'
import { DETECT_OPERATIONS } from './detect-operations.ts'
import { ERASURE_OPERATIONS } from './erasures.ts'
import { EVENT_OPERATIONS } from './events.ts'
import { FEEDBACK_OPERATIONS } from './feedback.ts'
import { FLEET_OPERATIONS } from './fleet.ts'
import { GRANT_OPERATIONS } from './grants.ts'
import { KEY_OPERATIONS } from './keys.ts'
import { ME_OPERATIONS } from './me.ts'
import { PAYMENT_OPERATIONS } from './payments.ts'
import { POLICY_OPERATIONS } from './policy.ts'
import { explainPolicy } from './policy-explain.ts'
import { previewPolicy } from './policy-preview.ts'
import { showTerms } from './policy-terms.ts'
import { REQUEST_OPERATIONS } from './requests.ts'
import { SETTING_OPERATIONS } from './settings.ts'
import { SIGNATURE_OPERATIONS } from './signatures.ts'
import { SIGNING_KEY_OPERATIONS } from './signing-keys.ts'
import { SINK_OPERATIONS } from './sinks.ts'
import { STATS_OPERATIONS } from './stats.ts'
import { SUBMISSION_OPERATIONS } from './submissions.ts'
import { taskOperations } from './tasks.ts'
import { toolOperations } from './tools.ts'
import { TRUST_OPERATIONS } from './trust.ts'
import { USER_OPERATIONS } from './users.ts'
import { type ApiVersion, inVersion } from '../http/version.ts'
import type { ApiContext } from './context.ts'
import type { ApiOffered } from './operation.ts'
import { WEBHOOK_OPERATIONS } from './webhooks.ts'

/** Operations that tools run on one item, and tasks on many. */
const RESOURCES: readonly ApiOffered[] = [
  ...DETECT_OPERATIONS,
  ...AGENT_OPERATIONS,
  ...SIGNATURE_OPERATIONS,
  ...STATS_OPERATIONS,
  ...SUBMISSION_OPERATIONS,
]

/** The types of tasks. */
export const TASK_TYPES = taskTypesOf(toolsOf(inVersion(RESOURCES, 'v1')), [ANALYZE_CAPTURE])

const FOR_TOOLS: readonly ApiOffered[] = [...RESOURCES, ...taskOperations(TASK_TYPES)]

/** For `/execute`, MCP and A2A. In every version they run the operations of /v1. */
export const TOOLS = toolsOf(inVersion(FOR_TOOLS, 'v1'))

const ALL: readonly ApiOffered[] = [
  ...FOR_TOOLS,
  ...toolOperations(TOOLS),
  ...REQUEST_OPERATIONS,
  ...AGENT_CARD_OPERATIONS,
  ...AGENT_ROBOTS_OPERATIONS,
  ...AGENT_STATS_OPERATIONS,
  ...AGENT_FINGERPRINT_OPERATIONS,
  ...AGENT_RULE_OPERATIONS,
  ...PAYMENT_OPERATIONS,
  ...CAMPAIGN_OPERATIONS,
  ...EVENT_OPERATIONS,
  ...CASE_OPERATIONS,
  ...SINK_OPERATIONS,
  ...FEEDBACK_OPERATIONS,
  ...FLEET_OPERATIONS,
  ...ME_OPERATIONS,
  ...KEY_OPERATIONS,
  ...GRANT_OPERATIONS,
  ...CLIENT_OPERATIONS,
  ...SIGNING_KEY_OPERATIONS,
  ...AUDIT_OPERATIONS,
  ...ERASURE_OPERATIONS,
  ...APP_OPERATIONS,
  ...APP_POLICY_OPERATIONS,
  ...POLICY_OPERATIONS,
  previewPolicy,
  explainPolicy,
  showTerms,
  ...SETTING_OPERATIONS,
  ...TRUST_OPERATIONS,
  ...USER_OPERATIONS,
  ...WEBHOOK_OPERATIONS,
  ...DELIVERY_OPERATIONS,
]

export const V1: ApiVersion<ApiContext> = { prefix: '/v1', isBeta: false, operations: inVersion(ALL, 'v1') }
export const V2: ApiVersion<ApiContext> = { prefix: '/v2', isBeta: true, operations: inVersion(ALL, 'v2') }
export const VERSIONS: readonly ApiVersion<ApiContext>[] = [V1, V2]

/** The ids are the same in all versions. */
export const OPERATION_IDS: readonly string[] = V1.operations.map(({ id }) => id)
