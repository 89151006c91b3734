export interface ManagerTables {
  detections: DetectionTable
  traffic: TrafficTable
}

/** Answers of `/detect`, for feedback that arrives at another process. Bounded: the oldest are deleted. */
interface DetectionTable {
  /** The id of the request. */
  id: string
  at_ms: number
  /** JSON: the verdict. */
  document: string
}

/** The requests of each process in its last second. Bounded: one row for each process of the last hour. */
interface TrafficTable {
  process: string
  at_ms: number
  /** JSON: sums. */
  document: string
}
