export interface ThreatTables {
  threat_windows: ThreatWindowTable
  event_storms: EventStormTable
}

/**
 * A threat that was reported recently, with its repetitions. It is not reported again before the
 * window ends. Bounded by EventStorms.
 */
export interface ThreatWindowTable {
  /** Reason, app, fingerprint and address. */
  key: string
  /** The topic of its storm. */
  topic: string
  ends_at_ms: number
  /** The repetitions since the report. */
  count: number
  /** The first repetition; without any, the time of the report. */
  since_ms: number
  /** The last report or repetition. */
  until_ms: number
  /** JSON: the reported event. */
  event: string
}

/**
 * The number of reports of a topic in a minute, and a summary of those that exceeded the
 * limit. Bounded: one row for each kind of threat at each app.
 */
export interface EventStormTable {
  topic: string
  minute_ms: number
  told: number
  /** Events that were not reported. */
  count: number
  since_ms: number
  until_ms: number
  /** AddressSketches. */
  addresses: string
  fingerprints: string
  /** JSON: a few. */
  examples: string
  /** JSON: the first event that was not reported; empty without any. */
  event: string
}
