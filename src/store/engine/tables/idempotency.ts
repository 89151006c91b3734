export interface IdempotencyTables {
  idempotency: IdempotencyTable
}

/** A request that must not run twice, and its response. */
export interface IdempotencyTable {
  principal: string
  key_digest: string
  request_hash: string
  /** `null`: still running. */
  status: number | null
  /** JSON: an object of strings, sealed with the idempotency key. */
  headers: string | null
  /** Sealed with the idempotency key. */
  body: string | null
  created_at_ms: number
  expires_at_ms: number
}
