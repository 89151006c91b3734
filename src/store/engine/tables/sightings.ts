import type { ColumnType, Generated } from 'kysely'

export interface SightingTables {
  sightings: SightingTable
  sightings_taken: SightingsTakenTable
  rollups: RollupTable
  fingerprints_seen: FingerprintSeenTable
  agents_seen: AgentSeenTable
}

/** Sightings as they came, for a day or so; bounded: the oldest are forgotten first. */
export interface SightingTable {
  /** In the order in which they were stored. */
  number: Generated<number>
  id: string
  seen_at_ms: number
  /** A Sighting, in JSON. */
  document: string
}

/** Which Sightings have been counted, so that one that comes again is not: by process and second. */
export interface SightingsTakenTable {
  slot: string
  /** JSON: from, to, from, to, …, in ascending order. */
  ranges: string
  taken_at_ms: number
}

/** How many requests there were in a minute, an hour, a day: everything is in all three, for as long as each is kept. */
export interface RollupTable {
  grain_ms: number
  dimension: string
  /** When the minute, hour or day began. */
  at_ms: number
  key: string
  requests: number
  /** Of them, with the verdict `agent`. */
  agents: number
  /** Of them, that were blocked. */
  blocked: number
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
  /** What that is estimated by. */
  sketch: string
  /** 1: some software has it, as far as was known when it was last seen. */
  is_named: 0 | 1
  /** The lowest is forgotten first. */
  rank: number
}

/** An agent on live traffic, on this installation. */
export interface AgentSeenTable {
  software_id: string
  first_seen_ms: number
  last_seen_ms: number
  requests: number
  /** Those that clients have named: a VersionTally, in JSON. */
  versions: ColumnType<string, string | undefined, string>
}
