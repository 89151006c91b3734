import * as z from 'zod'
import { type AppScope, reaches } from '../../apps/app-scope.ts'
import { CATEGORIES, PURPOSES } from '../../classify/known/software.ts'
import { PROOF_METHODS } from '../../classify/verdict/proof.ts'
import { CONFLICTS } from '../../classify/verdict/proof-evidence.ts'
import type { Sighting } from '../../plane/sighting.ts'
import { ACTIONS } from '../../plane/counts/buckets.ts'
import type { RequestFilter } from '../../store/traffic/request-filter.ts'
import {
  isHash,
  shownAddress,
  type WantedAddresses,
  wantedAddresses,
} from '../../plane/privacy/address-form.ts'
import { type AddressRange, parseAddressRange } from '../../wire/address-ranges.ts'
import { insufficientScope } from '../http/access/needed-scopes.ts'
import type { Principal } from '../http/access/principal.ts'
import { invalid } from '../http/refusal.ts'
import { optionalIntegerInQuery, textInQuery, timeInQuery } from '../http/schemas.ts'
import { belongsTo, type CampaignRecord, isMember, parseCampaign } from '../intake/campaign-record.ts'
import { sightOf } from '../intake/personal-data.ts'
import { shownPath } from '../../plane/privacy/shown-path.ts'
import { filteredApps, TEAM_FILTER } from './app-filters.ts'
import type { ApiContext } from './context.ts'
import { VERDICTS } from './request-views.ts'
import { softwareIdOf } from './software-id.ts'

/** The version in a JA4H. */
const HTTP_VERSIONS = { '1.0': '10', '1.1': '11', '2': '20', '3': '30' } as const

/** The filters of requests, in every operation that has them. */
export const REQUEST_FILTERS = {
  id: textInQuery('Only the request with this id, which is also that of the decision.', 100).optional(),
  verdict: z.enum(VERDICTS).optional().meta({ description: 'Only requests with this verdict.' }),
  category: z.enum(CATEGORIES).optional().meta({ description: 'Only requests of agents of this category.' }),
  purpose: z
    .enum(PURPOSES)
    .optional()
    .meta({ description: 'Only requests of agents with this published purpose.' }),
  agent_id: textInQuery('Only requests of this agent: its id, its name or an alias.', 100).optional(),
  verified: z
    .enum(['true', 'false', ...PROOF_METHODS])
    .optional()
    .meta({
      description:
        'Only requests with a proven identity (`true`), without one (`false`), or proven by this method.',
    }),
  action: z.enum(ACTIONS).optional().meta({ description: 'Only requests with this action.' }),
  rule: textInQuery('Only requests that this rule has decided.').optional(),
  conflict: z.enum(CONFLICTS).optional().meta({
    description: 'Only requests with this evidence against the claimed or proven identity.',
  }),
  app: textInQuery('Only requests to this app, by its id.', 63).optional(),
  ...TEAM_FILTER,
  host: textInQuery('Only requests to this host, as in the request.').optional(),
  path: textInQuery('Only requests whose path, as shown to the caller, begins with this.', 2_000).optional(),
  address: textInQuery(
    'Only requests from this address or network, also if it is stored as a network or a hash (`privacy.addresses`), or with this `hash:…`. Without the scope `admin`, it must be a network of at least IPv4 /24 or IPv6 /48 (otherwise 403).',
    100,
  ).optional(),
  asn: optionalIntegerInQuery(
    1,
    4_294_967_295,
    'Only requests from this network, by the number of its autonomous system, as the list of `identity.asn_file` has it today. Requests whose addresses are stored as hashes are in none. 400 if no list is set.',
  ),
  country: z.string().length(2).optional().meta({
    description:
      'Only requests from networks of this country (ISO 3166-1), if the list of `identity.asn_file` has countries. Reads one request after another.',
    example: 'DE',
  }),
  ja4: textInQuery('Only requests with this JA4.', 100).optional(),
  ja4h: textInQuery('Only requests with this JA4H.', 100).optional(),
  http_version: z
    .enum(Object.keys(HTTP_VERSIONS) as (keyof typeof HTTP_VERSIONS)[])
    .optional()
    .meta({ description: 'Only requests of this version of HTTP, as in the JA4H.' }),
  proxy: textInQuery('Only requests received by this proxy.').optional(),
  campaign_id: textInQuery(
    'Only requests of this campaign, also those of its members from before it was found. An unknown id finds none.',
    100,
  ).optional(),
  mcp_method: textInQuery('Only calls of an MCP server with this method.', 200).optional(),
  mcp_tool: textInQuery('Only calls of this tool of an MCP server.', 200).optional(),
  since: timeInQuery('Only requests that were seen from this time on.'),
  until: timeInQuery('Only requests that were seen before this time.'),
}
type Filters = z.output<z.ZodObject<typeof REQUEST_FILTERS>>

interface WantedRequests {
  /** The part of the filters that the database answers. */
  readonly filter: RequestFilter
  /** The other part. */
  readonly rest: (request: Pick<Sighting, 'path' | 'address' | 'campaign'>) => boolean
  /** The apps of the filters that the principal may see. */
  readonly apps: AppScope
  /** All of it. */
  readonly isWanted: (sighting: Sighting) => boolean
}

/**
 * The requests that fit the filters and that the principal may see. Filters compare with what it may see: otherwise
 * each answer would reveal a little of what it may not see. Throws a Refusal.
 */
export async function wantedRequests(
  filters: Filters,
  principal: Principal,
  management: ApiContext,
): Promise<WantedRequests> {
  const { address, agent_id, campaign_id, path } = filters
  const addresses = address === undefined ? null : addressesIn(address, principal, management)
  const agent = agent_id === undefined ? undefined : await softwareIdOf(agent_id, management)
  const campaign = campaign_id === undefined ? null : await campaignOf(campaign_id, management.store)
  const apps = await filteredApps(filters, principal, management)
  const placed = await placedIn(filters, principal, management)
  const wanted = { ...filters, agent, addresses, placed, campaign, apps }
  const isOfPath = isFull(principal) || path === undefined ? null : path
  const rest: WantedRequests['rest'] = (request) =>
    (campaign === null || request.campaign === campaign.id || campaign.isMember(request)) &&
    (addresses === null || addresses.has(request.address)) &&
    (placed === null || placed.has(request.address)) &&
    (isOfPath === null || shownPath(request.path).startsWith(isOfPath))
  return { filter: searchOf(wanted, principal), rest, apps, isWanted: filterOf(wanted, principal) }
}

interface Wanted extends Filters {
  /** The id of the agent: Sightings have no names. */
  readonly agent: string | undefined
  readonly addresses: WantedAddresses | null
  readonly placed: PlacedAddresses | null
  readonly campaign: WantedCampaign | null
  readonly apps: AppScope
}

function searchOf(wanted: Wanted, principal: Principal): RequestFilter {
  const { id, apps, host, path, ja4h, purpose, verified, http_version, since, until } = wanted
  const { verdict, category, agent, action: done, rule, ja4, proxy, addresses, campaign, conflict } = wanted
  const { mcp_method: mcpMethod, mcp_tool: mcpTool } = wanted
  return {
    ...{ apps, id, host, ja4h, purpose, conflict, mcpMethod, mcpTool },
    profile: { verdict, category, agent, done, rule, ja4, proxy },
    verified: verified === 'true' ? true : verified === 'false' ? false : verified,
    httpVersion: http_version === undefined ? undefined : HTTP_VERSIONS[http_version],
    sinceMs: since === undefined ? undefined : Date.parse(since),
    untilMs: until === undefined ? undefined : Date.parse(until) - 1,
    pathPrefix: path === undefined || isFull(principal) ? path : unchangedPart(path),
    addresses: addresses?.keys ?? wanted.placed?.keys,
    campaign: campaign === null ? undefined : { id: campaign.id, pages: campaign.pages },
  }
}

/** The whole segments at the beginning of a path as shown, up to the first redacted one. They are as in the request. */
function unchangedPart(shown: string): string {
  const end = shown.indexOf('[')
  const known = end === -1 ? shown : shown.slice(0, end)
  return known.slice(0, known.lastIndexOf('/') + 1)
}

function filterOf(wanted: Wanted, principal: Principal): WantedRequests['isWanted'] {
  const { id, verdict, category, purpose, agent, verified, action, rule, apps, host, path } = wanted
  const { ja4, ja4h, http_version, proxy, since, until, addresses, campaign, conflict } = wanted
  const { mcp_method, mcp_tool, placed } = wanted
  const sinceMs = since === undefined ? 0 : Date.parse(since)
  const untilMs = until === undefined ? Number.POSITIVE_INFINITY : Date.parse(until)
  const isShownInFull = isFull(principal)
  return (sighting) =>
    reaches(apps, sighting.app) &&
    (id === undefined || sighting.id === id) &&
    (rule === undefined || sighting.rule === rule) &&
    (ja4h === undefined || sighting.ja4h === ja4h) &&
    sighting.seenAtMs >= sinceMs &&
    sighting.seenAtMs < untilMs &&
    (verdict === undefined || sighting.verdict === verdict) &&
    (category === undefined || sighting.category === category) &&
    (purpose === undefined || sighting.purposes.includes(purpose)) &&
    (agent === undefined || sighting.agent === agent) &&
    (verified === undefined || isVerified(sighting, verified)) &&
    (action === undefined || sighting.done === action) &&
    (conflict === undefined || sighting.evidence.includes(conflict)) &&
    (host === undefined || sighting.host === host) &&
    (ja4 === undefined || sighting.ja4 === ja4) &&
    (http_version === undefined || httpVersionOf(sighting.ja4h) === http_version) &&
    (proxy === undefined || sighting.proxy === proxy) &&
    (addresses === null || addresses.has(sighting.address)) &&
    (placed === null || placed.has(sighting.address)) &&
    (campaign === null || campaign.has(sighting)) &&
    (mcp_method === undefined || sighting.mcpMethod === mcp_method) &&
    (mcp_tool === undefined || sighting.mcpTool === mcp_tool) &&
    (path === undefined || (isShownInFull ? sighting.path : shownPath(sighting.path)).startsWith(path))
}

function isVerified({ verified }: Sighting, wanted: NonNullable<Filters['verified']>): boolean {
  if (wanted === 'true') return verified !== null
  return wanted === 'false' ? verified === null : verified === wanted
}

/** The version of HTTP; `null`: unknown. */
export function httpVersionOf(ja4h: string | null): string | null {
  const code = ja4h?.slice(2, 4)
  return Object.entries(HTTP_VERSIONS).find(([, each]) => each === code)?.[0] ?? null
}

interface WantedCampaign extends NonNullable<RequestFilter['campaign']> {
  has(sighting: Sighting): boolean
  /** Whether the network of the request is one of its members. */
  isMember(request: Pick<Sighting, 'address'>): boolean
}

async function campaignOf(id: string, { campaigns }: ApiContext['store']): Promise<WantedCampaign> {
  const row = await campaigns.byId(id)
  const record: CampaignRecord | null = row === null ? null : parseCampaign(row.document)
  if (record === null)
    return { id, pages: null, has: ({ campaign }) => campaign === id, isMember: () => false }
  const { program, host } = record
  return { id, pages: { program, host }, has: belongsTo(record), isMember: isMember(record) }
}

/**
 * The filter `address`: an address, a network or a hash. A principal that sees only networks cannot find out an address
 * by filtering for it. Throws a Refusal.
 */
function addressesIn(
  text: string,
  principal: Principal,
  { publicUrl, addressHashers }: ApiContext,
): WantedAddresses {
  const wanted = wantedAddresses(text, addressHashers)
  if (wanted === null) throw invalid([{ pointer: '/address', detail: TAKES }])
  const range = isHash(text) ? null : parseAddressRange(text)
  if (!isFull(principal) && (range === null || !isShown(range)))
    throw insufficientScope(NEEDED, principal, publicUrl)
  return wanted
}

/** Addresses of a network or a country. */
interface PlacedAddresses {
  /** See WantedAddresses. `undefined`: they are in too many ranges, or in ranges of too many networks. */
  readonly keys: WantedAddresses['keys'] | undefined
  has(stored: string): boolean
}

/** The filters `asn` and `country`, of addresses as the principal sees them. Throws a Refusal. */
async function placedIn(
  { asn, country }: Filters,
  principal: Principal,
  { networks }: ApiContext,
): Promise<PlacedAddresses | null> {
  if (asn === undefined && country === undefined) return null
  const file = networks()
  if (file === null) throw invalid([{ pointer: asn === undefined ? '/country' : '/asn', detail: NEEDS_FILE }])
  return {
    keys: asn === undefined ? undefined : ((await file.rangesOf(asn)) ?? undefined),
    has: (stored) => {
      const found = file.ofRange(isFull(principal) ? stored : shownAddress(stored))
      return (
        found !== null &&
        (asn === undefined || found.asn === asn) &&
        (country === undefined || found.country === country)
      )
    },
  }
}

/** Whether the range is at least as large as the networks that are shown. */
function isShown({ isIpv4, length }: AddressRange): boolean {
  return length <= (isIpv4 ? 24 : 48)
}

function isFull(principal: Principal): boolean {
  return sightOf(principal) === 'full'
}

const TAKES =
  'must be an address, a network or a hash of one, such as 203.0.113.7, 203.0.113.0/24 or 2001:db8::/48'
const NEEDS_FILE = 'needs a list of networks: set identity.asn_file'
const NEEDED = {
  what: 'a filter narrower than IPv4 /24 or IPv6 /48',
  needs: [['admin']],
} as const
