import type { Generated } from 'kysely'

export interface WebhookTables {
  webhooks: WebhookTable
  webhook_secrets: WebhookSecretTable
}

export interface WebhookTable {
  id: string
  url: string
  /** JSON: a list. */
  events: string
  description: string | null
  enabled: number
  created_at_ms: number
  updated_at_ms: number
  /** JSON: an object; `null`: it receives all events of its types. */
  filters: string | null
  /** JSON: a list of ids, or `"*"`. */
  apps: Generated<string>
  /** Failed attempts in a row, over all deliveries. */
  failures: Generated<number>
  /** Pauses in a row, each longer than the one before. */
  pauses: Generated<number>
  failing_since_ms: number | null
  /** Nothing is sent before then. */
  paused_until_ms: number | null
  last_delivery_at_ms: number | null
  /** `null`: not disabled, or disabled by its administrator. */
  disabled_reason: string | null
  disabled_at_ms: number | null
}

/**
 * The secrets that sign deliveries. Each webhook has one permanent secret, and for a time its predecessors.
 */
export interface WebhookSecretTable {
  id: string
  webhook_id: string
  /** Encrypted with a key that is not in the database. */
  sealed: string
  created_at_ms: number
  /** `null`: permanent. */
  expires_at_ms: number | null
}
