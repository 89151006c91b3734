export interface RateLimitTables {
  rate_limits: RateLimitTable
}

interface RateLimitTable {
  /** The plan and the principal. */
  key: string
  /** Requests in the window. */
  points: number
  ends_at_ms: number
}
