export type WebhookTables = Record<never, never>
