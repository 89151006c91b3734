import type { ColumnType, Generated } from 'kysely'

export interface SightingTables {
  sightings: SightingTable
  sightings_taken: SightingsTakenTable
  rollups: RollupTable
  fingerprints_seen: FingerprintSeenTable
  agents_seen: AgentSeenTable
  campaigns: CampaignTable
  campaign_signs: CampaignSignsTable
}

/** Sightings as received, kept for about a day. Bounded: the oldest are deleted first. */
interface SightingTable {
  /** In the order in which they were stored. */
  number: Generated<number>
  id: string
  seen_at_ms: number
  /** A Sighting, as JSON. */
  document: string
}

/** The sightings that were counted, by process and second, so that a repeated one is not counted again. */
interface SightingsTakenTable {
  slot: string
  /** JSON: from, to, from, to, …, ascending. */
  ranges: string
  taken_at_ms: number
}

/** Requests in each minute, hour and day. Every request is in all three, for as long as each is kept. */
interface RollupTable {
  grain_ms: number
  dimension: string
  /** The start of the minute, hour or day. */
  at_ms: number
  key: string
  requests: number
  /** Requests with the verdict `agent`. */
  agents: number
  /** Requests that were blocked. */
  blocked: number
}

/** A fingerprint on live traffic. Bounded: the least seen are deleted first. */
export interface FingerprintSeenTable {
  type: 'ja4' | 'ja4s' | 'ja4h' | 'ja4x'
  value: string
  first_seen_ms: number
  last_seen_ms: number
  requests: number
  /** Distinct addresses, estimated. */
  addresses: number
  /** The state of the estimate. */
  sketch: string
  /** 1: some software had it when it was last seen. */
  is_named: 0 | 1
  /** The lowest is deleted first. */
  rank: number
}

/** An agent on this installation's live traffic. */
interface AgentSeenTable {
  software_id: string
  first_seen_ms: number
  last_seen_ms: number
  requests: number
  /** The versions that clients claimed: a VersionTally, as JSON. */
  versions: ColumnType<string, string | undefined, string>
}

/** Crawlers that come from many addresses. */
interface CampaignTable {
  id: string
  found_at_ms: number
  last_seen_ms: number
  /** JSON. */
  document: string
}

/** Requests that other managers leave for the leader, which looks for campaigns in them. Taken within seconds. */
interface CampaignSignsTable {
  number: Generated<number>
  at_ms: number
  /** JSON: parts of Sightings. */
  document: string
}
