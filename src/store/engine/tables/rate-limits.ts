export interface RateLimitTables {
  rate_limits: RateLimitTable
}

export interface RateLimitTable {
  /** Of what is counted: the plan and the principal. */
  key: string
  /** Requests in the window. */
  points: number
  ends_at_ms: number
}
