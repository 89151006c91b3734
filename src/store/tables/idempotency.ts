export type IdempotencyTables = Record<never, never>
