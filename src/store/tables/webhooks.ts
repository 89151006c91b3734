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
