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
  /** JSON: an object; `null`: all events of its types are for it. */
  filters: string | null
  /** In a row, of all attempts. */
  failures: Generated<number>
  /** In a row, each longer than the one before. */
  pauses: Generated<number>
  failing_since_ms: number | null
  /** Nothing is sent before then. */
  paused_until_ms: number | null
  last_delivery_at_ms: number | null
  /** `null`: nobody but its administrator has. */
  disabled_reason: string | null
  disabled_at_ms: number | null
}

/** What deliveries are signed with; each webhook has one that stays, and for a while those before it. */
export interface WebhookSecretTable {
  id: string
  webhook_id: string
  /** Encrypted with a key that is not in the database. */
  sealed: string
  created_at_ms: number
  /** `null`: it stays. */
  expires_at_ms: number | null
}
