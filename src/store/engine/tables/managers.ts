export interface ManagerTables {
  detections: DetectionTable
  traffic: TrafficTable
}

/** What `/detect` has answered, for who has feedback on it at another process; bounded: the oldest are forgotten. */
export interface DetectionTable {
  /** Of the request. */
  id: string
  at_ms: number
  /** JSON: what somebody was held for. */
  document: string
}

/** What a process has taken in within its last second; bounded: a row for each process that was there in the last hour. */
export interface TrafficTable {
  process: string
  at_ms: number
  /** JSON: sums. */
  document: string
}
