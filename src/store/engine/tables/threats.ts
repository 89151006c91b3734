export interface ThreatTables {
  threat_windows: ThreatWindowTable
  event_storms: EventStormTable
}

/** What was told lately, and how often it came since: it is not told again before the window ends. Bounded by EventStorms. */
export interface ThreatWindowTable {
  /** Reason, fingerprint and address. */
  key: string
  /** Of its storm. */
  topic: string
  ends_at_ms: number
  /** Of what came since it was told. */
  count: number
  /** The first of these; without any, when it was told. */
  since_ms: number
  /** The last that is told or counted. */
  until_ms: number
  /** JSON: the event that was told. */
  event: string
}

/** How much of a topic was told in a minute, and of what was too much all that is kept. A row each topic. */
export interface EventStormTable {
  topic: string
  minute_ms: number
  told: number
  /** Of what was not told. */
  count: number
  since_ms: number
  until_ms: number
  /** AddressSketches. */
  addresses: string
  fingerprints: string
  /** JSON: a few. */
  examples: string
  /** JSON: what the first of them would have been told as; empty without any. */
  event: string
}
