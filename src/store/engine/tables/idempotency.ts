export interface IdempotencyTables {
  idempotency: IdempotencyTable
}

/** A request that must not be done twice, and what came of it. */
export interface IdempotencyTable {
  principal: string
  key_digest: string
  request_hash: string
  /** `null`: somebody is at it. */
  status: number | null
  /** Sealed with the key; JSON: an object of texts. */
  headers: string | null
  /** Sealed with the key. */
  body: string | null
  created_at_ms: number
  expires_at_ms: number
}
