export interface SightingTables {
  fingerprints_seen: FingerprintSeenTable
  agents_seen: AgentSeenTable
}

/** A fingerprint on live traffic; bounded: what is seen least is forgotten first. */
export interface FingerprintSeenTable {
  type: 'ja4' | 'ja4s' | 'ja4h' | 'ja4x'
  value: string
  first_seen_ms: number
  last_seen_ms: number
  requests: number
  /** Distinct addresses, about. */
  addresses: number
}

/** An agent on live traffic, on this installation. */
export interface AgentSeenTable {
  software_id: string
  first_seen_ms: number
  last_seen_ms: number
  requests: number
}
