import { FLEET_OPERATIONS } from './fleet.ts'
import { KEY_OPERATIONS } from './keys.ts'
import type { AnyOperation } from './operation.ts'
import { POLICY_OPERATIONS } from './policy.ts'
import { previewPolicy } from './policy-preview.ts'
import { SETTING_OPERATIONS } from './settings.ts'
import { STATS_OPERATIONS } from './stats.ts'
import { WEBHOOK_OPERATIONS } from './webhooks.ts'

/** All there is of /v1. */
export const OPERATIONS: readonly AnyOperation[] = [
  ...FLEET_OPERATIONS,
  ...KEY_OPERATIONS,
  ...POLICY_OPERATIONS,
  previewPolicy,
  ...SETTING_OPERATIONS,
  ...STATS_OPERATIONS,
  ...WEBHOOK_OPERATIONS,
]

export const OPERATION_IDS: readonly string[] = OPERATIONS.map(({ id }) => id)
