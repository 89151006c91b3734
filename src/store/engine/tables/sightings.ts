import type { ColumnType, Generated } from 'kysely'

export interface SightingTables {
  sightings: SightingTable
  sighting_parts: SightingPartTable
  sighting_profiles: SightingProfileTable
  sightings_taken: SightingsTakenTable
  traffic_outbox: TrafficOutboxTable
  traffic_outbox_state: TrafficOutboxStateTable
  rollups: RollupTable
  app_rollups: AppRollupTable
  fingerprints_seen: FingerprintSeenTable
  agents_seen: AgentSeenTable
  campaigns: CampaignTable
  campaign_signs: CampaignSignsTable
}

/** Sightings, kept for about a day. Bounded: the oldest are deleted first. */
export interface SightingTable {
  /** In the order in which they were stored. */
  number: number
  id: string
  seen_at_ms: number
  /** The id of its profile. */
  profile: number
  app: string
  host: string | null
  address: string
  /** See storedAddressKey. `null`: the address has no such key. */
  address_key: string | null
  method: string
  path: string
  /** The end of the JA4H, a hash of cookies; `null`: the profile has the whole JA4H. */
  ja4h_cookies: string | null
  snapshot: number
  request_kind: number
  header_order: number
  target: number
  campaign: string | null
  /** The share of such requests that is stored; `null`: all. */
  sampled: number | null
  mcp_method: string | null
  mcp_tool: string | null
}

/**
 * Parts of 65,536 Sightings by number: `number >> 16`. The indexes of Sightings begin with the part, so that a
 * transaction changes only the pages of the newest part. A search reads one part after another.
 */
interface SightingPartTable {
  number: number
  /** The number of its last Sighting. */
  last_sighting: number
  first_seen_ms: number
  last_seen_ms: number
}

/**
 * What the Sightings of one client have in common, stored once for many. Bounded: a profile is deleted after the
 * last of its Sightings.
 */
export interface SightingProfileTable {
  id: Generated<number>
  /** A digest of the columns below `used_at_ms`. */
  hash: string
  /** When it was last used. May be an hour late. */
  used_at_ms: number
  proxy: string
  user_agent: string | null
  ja4: string | null
  ja4_source: string | null
  no_hello: string | null
  stable: string | null
  ja4s: string | null
  ja4h: string | null
  ja4x: string | null
  http2: string | null
  program: number
  verdict: string
  agent: string | null
  category: string | null
  /** JSON, like `evidence` and `forged`. */
  purposes: string
  software: string | null
  confidence: number
  name_confidence: number
  verified: string | null
  signer: string | null
  key: string | null
  signature_fault: string | null
  alleged_signer: string | null
  evidence: string
  rule: string
  layer: string | null
  action: string
  dry_run: 0 | 1
  done: string
  limited: 0 | 1
  forged: string
}

/** The sightings that were counted, by process and second, so that a repeated one is not counted again. */
interface SightingsTakenTable {
  slot: string
  /** JSON: from, to, from, to, …, ascending. */
  ranges: string
  taken_at_ms: number
}

/** Requests that are to be sent to ClickHouse, in parts. Bounded: it takes no more than may wait. */
interface TrafficOutboxTable {
  /** The number of the last request of the part. */
  last_number: number
  requests: number
  /** Compressed lines of JSON. */
  lines: Buffer
}

/** One row at most. */
interface TrafficOutboxStateTable {
  id: 1
  /** The highest number that a request was given. */
  last_number: number
  /** What is being sent: all parts up to this one. `null`: nothing. */
  sending_until: number | null
  /** The number of the last request that was sent. */
  sent_number: number
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

/** The same for each app. Bounded: so many apps in each minute, hour and day. */
interface AppRollupTable {
  grain_ms: number
  app: string
  /** The start of the minute, hour or day. */
  at_ms: number
  /** JSON: by dimension and key, the numbers of requests, of those of agents, and of those that were blocked. */
  counts: string
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
