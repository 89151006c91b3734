import type { SightingTables } from '../engine/tables/sightings.ts'
import type { ThreatTables } from '../engine/tables/threats.ts'
import { impersonal, personal, type TableData } from './table-data.ts'

const REQUESTS_KEPT = '`retention.requests`, `sightings.rows_max`, `sightings.bytes_max`'
const REQUESTS_WHY = 'to explain decisions, to find threats and campaigns, and for searches and exports'

export const SIGHTINGS_DATA: Readonly<Record<keyof SightingTables, TableData>> = {
  sightings: personal(
    {
      address: 'the address of the client',
      address_key: 'the same in a form that is searched',
      path: 'the path of the request',
      ja4h_cookies: 'a hash of the cookies',
    },
    { why: REQUESTS_WHY, kept: REQUESTS_KEPT, erased: 'the requests of the address are deleted' },
    'number id seen_at_ms profile app host method snapshot request_kind header_order target campaign sampled mcp_method mcp_tool',
  ),
  sighting_parts: impersonal('number last_sighting first_seen_ms last_seen_ms'),
  sighting_profiles: personal(
    { user_agent: 'the User-Agent of the client', ja4h: 'a hash of header names' },
    {
      why: 'what the requests of equal clients have in common, stored once',
      kept: 'until the last of these requests is deleted',
      erased: 'deleted within an hour of the last request of all clients that share it',
    },
    'id hash used_at_ms proxy ja4 ja4_source no_hello stable ja4s ja4x http2 program verdict agent category purposes software confidence name_confidence verified signer key signature_fault alleged_signer evidence rule layer action dry_run done limited forged',
  ),
  sightings_taken: impersonal('slot ranges taken_at_ms'),
  traffic_outbox: personal(
    { lines: 'requests, as in ClickHouse' },
    {
      why: 'requests that wait for ClickHouse',
      kept: 'a second or two, and longer while ClickHouse is unavailable',
      erased: 'the requests of the address are deleted',
    },
    'last_number requests',
  ),
  traffic_outbox_state: impersonal('id last_number sending_until sent_number'),
  rollups: impersonal('grain_ms dimension at_ms key requests agents blocked'),
  app_rollups: impersonal('grain_ms app at_ms counts'),
  fingerprints_seen: personal(
    { value: 'a JA4H, which ends with hashes of the cookies' },
    {
      why: 'to find fingerprints that no signature has yet',
      kept: 'the 100,000 most seen',
      erased: 'the JA4H of the deleted requests are deleted',
    },
    'type first_seen_ms last_seen_ms requests addresses sketch is_named rank',
  ),
  agents_seen: impersonal('software_id first_seen_ms last_seen_ms requests versions'),
  campaigns: personal(
    { document: 'the members: keyed 32-bit hashes of networks, and a User-Agent' },
    {
      why: 'crawlers that come from many addresses',
      kept: '`retention.events` after the last request',
      erased: 'the address is removed from the members, also in the memory of the leader',
    },
    'id found_at_ms last_seen_ms',
  ),
  campaign_signs: personal(
    { document: 'keyed 32-bit hashes of networks' },
    { why: 'requests on their way to the leader', kept: 'seconds', erased: 'taken away by the leader' },
    'number at_ms',
  ),
}

export const THREATS_DATA: Readonly<Record<keyof ThreatTables, TableData>> = {
  threat_windows: personal(
    { key: 'the address of the client', event: 'the event, as in `events`' },
    {
      why: 'to report a threat once, and to count its repetitions',
      kept: '`threats.window`',
      erased: 'those of the address are deleted',
    },
    'topic ends_at_ms count since_ms until_ms',
  ),
  event_storms: personal(
    { examples: 'addresses of some clients', event: 'the event, as in `events`' },
    {
      why: 'to report many threats as one',
      kept: 'a minute; the last one of each kind of threat until the next',
      erased: 'the address is blanked',
    },
    'topic minute_ms told count since_ms until_ms addresses fingerprints',
  ),
}

/** The table `requests` in ClickHouse. */
export const CLICKHOUSE_DATA: TableData = personal(
  {
    address: 'the address of the client',
    address_key: 'the same in a form that is searched',
    path: 'the path of the request',
    user_agent: 'the User-Agent of the client',
    ja4h: 'hashes of header names and cookies',
  },
  {
    why: REQUESTS_WHY,
    kept: '`retention.requests`, `sightings.rows_max`',
    erased: 'the requests of the address are deleted',
  },
  'number id seen_at_ms app host method proxy ja4 ja4_source no_hello stable ja4s ja4x http2 program verdict agent category purposes software confidence name_confidence verified signer key signature_fault alleged_signer evidence rule layer action dry_run done limited forged snapshot request_kind header_order target campaign sampled mcp_method mcp_tool',
)
