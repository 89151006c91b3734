export interface IdempotencyTables {
  idempotency: IdempotencyTable
}

/** A request that must not be done twice, and what came of it. */
export interface IdempotencyTable {
  principal: string
  key: string
  request_hash: string
  /** `null`: somebody is at it. */
  status: number | null
  /** JSON: an object of texts. */
  headers: string | null
  body: string | null
  created_at_ms: number
  expires_at_ms: number
}
