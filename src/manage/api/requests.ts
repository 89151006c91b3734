import * as z from 'zod'
import { conflictsIn } from '../../classify/verdict/proof-evidence.ts'
import { CATEGORIES, PURPOSES } from '../../classify/known/software.ts'
import type { Sighting } from '../../plane/sighting.ts'
import { readSighting } from '../../plane/sighting-document.ts'
import { ACTIONS } from '../../store/traffic/rollup-tally.ts'
import type { Principal } from '../http/access/principal.ts'
import type { ApiContext } from './context.ts'
import { shownTo, type Sight, sightOf } from '../intake/personal-data.ts'
import { shownPath } from '../intake/shown-path.ts'
import { fingerprintsOf, outlineOf } from '../judging/sighting-account.ts'
import { nameConfidence } from './detect.ts'
import { belongsTo, parseCampaign } from '../intake/campaign-record.ts'
import { softwareIdOf } from './software-id.ts'
import { CURSOR_ANSWER, CURSOR_FIELDS, cursorFor, cursorLinks, markOf, positionIn } from '../http/cursor.ts'
import { invalid } from '../http/refusal.ts'
import { type ApiOperation, operation } from './operation.ts'
import { textInQuery, time } from '../http/schemas.ts'
import { Address, type AddressRange, AddressRanges, parseAddressRange } from '../../wire/address-ranges.ts'
import { insufficientScope } from '../http/access/needed-scopes.ts'

const VERDICTS = ['agent', 'automation', 'human', 'unknown'] as const

const request = z
  .strictObject({
    id: z
      .string()
      .meta({ description: 'Also the id of the decision, as sent to the app and shown on error pages.' }),
    seen_at: time,
    proxy: z.string(),
    app: z
      .string()
      .meta({ description: 'The id of the app; `default` if it matched none.', example: 'shop' }),
    method: z.string(),
    host: z.string().nullable(),
    path: z.string().meta({
      description:
        'The path without the query. Without the scope `admin`, segments that look like secrets are `[redacted]`.',
    }),
    address: z.string().meta({
      description: 'The address of the client. Without the scope `admin`, its network (IPv4 /24, IPv6 /48).',
      example: '203.0.113.0/24',
    }),
    user_agent: z.string().nullable().meta({
      description: 'Without the scope `admin`, parts that look like secrets are `[redacted]`.',
    }),
    verdict: z.enum(VERDICTS),
    confidence: z.number(),
    name_confidence: nameConfidence,
    agent_id: z.string().nullable(),
    agent_category: z.string().nullable(),
    agent_purpose: z.array(z.string()).meta({ description: 'The published purposes of the agent.' }),
    software_id: z.string().nullable(),
    verified: z.string().nullable().meta({ description: 'How its identity was proven.' }),
    identity: z.string().nullable().meta({ description: 'The URL of the signer.' }),
    conflicts: z.array(z.string()).meta({
      description: 'Evidence that contradicts the claimed or proven identity, as in `X-Agent-Conflict`.',
    }),
    fingerprints: z.strictObject({ ja4: z.string(), ja4s: z.string(), ja4h: z.string(), ja4x: z.string() }),
    evidence: z.array(z.string()).meta({ description: 'The kinds of evidence, strongest first.' }),
    campaign_id: z.string().nullable().meta({
      description: 'The campaign that it belongs to, as far as the proxy knew.',
    }),
    rule: z.string(),
    action: z.string().meta({ description: 'The action taken.' }),
    dry_run: z
      .string()
      .nullable()
      .meta({ description: 'What a rule on trial would have done. `null`: no such rule matched.' }),
  })
  .meta({ id: 'Request' })

const filters = {
  verdict: z.enum(VERDICTS).optional().meta({ description: 'Only requests with this verdict.' }),
  category: z.enum(CATEGORIES).optional().meta({ description: 'Only requests of agents of this category.' }),
  purpose: z
    .enum(PURPOSES)
    .optional()
    .meta({ description: 'Only requests of agents with this published purpose.' }),
  agent_id: textInQuery('Only requests of this agent: its id, its name or an alias.', 100).optional(),
  action: z.enum(ACTIONS).optional().meta({ description: 'Only requests with this action.' }),
  app: textInQuery('Only requests to this app, by its id.', 63).optional(),
  host: textInQuery('Only requests to this host, as in the request.').optional(),
  path: textInQuery('Only requests whose path, as shown to the caller, begins with this.', 2_000).optional(),
  address: textInQuery(
    'Only requests from this address or network. Without the scope `admin`, it must be a network of at least IPv4 /24 or IPv6 /48 (otherwise 403).',
    100,
  ).optional(),
  ja4: textInQuery('Only requests with this JA4.', 100).optional(),
  proxy: textInQuery('Only requests received by this proxy.').optional(),
  campaign_id: textInQuery(
    'Only requests of this campaign, also those of its members from before it was found. An unknown id finds none.',
    100,
  ).optional(),
}
type Filters = z.output<z.ZodObject<typeof filters>>

const listRequests = operation({
  id: 'listRequests',
  method: 'GET',
  path: '/requests',
  tag: 'Statistics',
  summary: 'List or stream requests',
  description:
    'Recorded requests, newest first, as far back as `sightings.retention` keeps them. With filters, each page examines a limited number of requests, so it may hold few items or none although more follow. The list ends when `next_cursor` is null. With `Accept: text/event-stream`, requests are streamed as they come in.',
  scopes: ['read'],
  query: z.strictObject({ ...filters, ...CURSOR_FIELDS }),
  answer: z.strictObject({ requests: z.array(request), ...CURSOR_ANSWER }),
  run: async ({ query, target, principal }, management) => {
    const { store, publicUrl } = management
    const { cursor, limit, ...wanted } = query
    const mark = markOf('listRequests', wanted)
    const [number = null] = positionIn(cursor, mark) ?? []
    const isWanted = await filterOf(await withId(wanted, management), principal, management)
    const { found, next } = await look(store.sightings, isWanted, number as number | null, limit)
    const next_cursor = next === null ? null : cursorFor(mark, [next])
    return {
      body: { requests: found.map((each) => shown(each, sightOf(principal))), limit, next_cursor },
      headers: cursorLinks(publicUrl, target, next_cursor),
    }
  },
  stream: {
    hasIds: false,
    description:
      'Each `request` has as `data` the same object as in a list. The filters apply. Above fifty requests a second, the rest is only counted: `skipped`. Missed requests are not repeated.',
    example:
      'retry: 2000\n\nevent: request\ndata: {"id":"01a209b9-5d03-7000-8002-190b89a95204","verdict":"agent","path":"/"}\n\nevent: skipped\ndata: {"requests":1200}\n\n',
    begin: async (call, management) => {
      if (call.query.cursor !== undefined)
        throw invalid([
          { pointer: '/cursor', detail: 'is only allowed with lists: send Accept: application/json' },
        ])
      const isWanted = await filterOf(await withId(call.query, management), call.principal, management)
      return (over) => texts(isWanted, sightOf(call.principal), management, over)
    },
  },
})

const getRequest = operation({
  id: 'getRequest',
  method: 'GET',
  path: '/requests/{id}',
  tag: 'Statistics',
  summary: 'Get a request',
  scopes: ['read'],
  params: z.strictObject({
    id: z.string().max(100).meta({ example: '01a209b9-5d03-7000-8002-190b89a95204' }),
  }),
  answer: request,
  find: async ({ params }, { store }) => {
    const sighting = readSighting(await store.sightings.byId(params.id))
    return typeof sighting === 'string' ? null : sighting
  },
  run: ({ subject, principal }) => ({ body: shown(subject, sightOf(principal)) }),
})

export const REQUEST_OPERATIONS: readonly ApiOperation[] = [listRequests, getRequest]

/** Replaces the name of an agent by its id, because sightings contain ids. */
async function withId(wanted: Filters, management: ApiContext): Promise<Filters> {
  const { agent_id } = wanted
  return agent_id === undefined ? wanted : { ...wanted, agent_id: await softwareIdOf(agent_id, management) }
}

/**
 * Finds up to `limit` requests in as many sightings as one call may read. `next`: the search goes on before
 * this number.
 */
async function look(
  store: ApiContext['store']['sightings'],
  isWanted: IsWanted,
  from: number | null,
  limit: number,
): Promise<{ readonly found: readonly Sighting[]; readonly next: number | null }> {
  const untilMs = performance.now() + LOOK_MS
  const found: Sighting[] = []
  let next = from
  for (let looked = 0; looked < LOOKED_AT_MAX; ) {
    const slice = await store.newest(next, SLICE)
    for (const { number, document } of slice) {
      next = number
      const sighting = readSighting(document)
      if (typeof sighting !== 'string' && isWanted(sighting)) found.push(sighting)
      if (found.length === limit) return { found, next }
    }
    looked += slice.length
    if (slice.length < SLICE) return { found, next: null }
    if (performance.now() > untilMs) break
  }
  return { found, next }
}

type IsWanted = (sighting: Sighting) => boolean

/**
 * Compares with what the principal may see: otherwise each answer would reveal a little of what it may not
 * see. Throws a Refusal.
 */
async function filterOf(
  wanted: Filters,
  principal: Principal,
  { store, publicUrl }: ApiContext,
): Promise<IsWanted> {
  const { verdict, category, purpose, agent_id, action, app, host, path, address, ja4, proxy, campaign_id } =
    wanted
  const isFrom = address === undefined ? null : addressFilter(address, principal, publicUrl)
  const isFull = sightOf(principal) === 'full'
  const isOfCampaign = campaign_id === undefined ? null : await campaignFilter(campaign_id, store)
  return (sighting) =>
    (verdict === undefined || sighting.verdict === verdict) &&
    (category === undefined || sighting.category === category) &&
    (purpose === undefined || sighting.purposes.includes(purpose)) &&
    (agent_id === undefined || sighting.agent === agent_id) &&
    (action === undefined || sighting.done === action) &&
    (app === undefined || sighting.app === app) &&
    (host === undefined || sighting.host === host) &&
    (ja4 === undefined || sighting.ja4 === ja4) &&
    (proxy === undefined || sighting.proxy === proxy) &&
    (isFrom === null || isFrom(sighting.address)) &&
    (isOfCampaign === null || isOfCampaign(sighting)) &&
    (path === undefined || (isFull ? sighting.path : shownPath(sighting.path)).startsWith(path))
}

async function campaignFilter(id: string, { campaigns }: ApiContext['store']): Promise<IsWanted> {
  const row = await campaigns.byId(id)
  const record = row === null ? null : parseCampaign(row.document)
  return record === null ? ({ campaign }) => campaign === id : belongsTo(record)
}

/** As Server-Sent Events without an id, because they cannot be replayed. */
async function* texts(
  isWanted: IsWanted,
  sight: Sight,
  { requests }: ApiContext,
  over: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  yield 'retry: 2000\n\n'
  for await (const fresh of requests.follow(over)) {
    const of = fresh.requests.filter(isWanted)
    const told = of.slice(-TOLD_AT_ONCE)
    const skipped = fresh.skipped + of.length - told.length
    const events = told.map((each) => `event: request\ndata: ${JSON.stringify(shown(each, sight))}\n\n`)
    if (skipped > 0) events.push(`event: skipped\ndata: ${JSON.stringify({ requests: skipped })}\n\n`)
    if (events.length > 0) yield events.join('')
  }
}

function shown(sighting: Sighting, sight: Sight): z.output<typeof request> {
  const { agent, category, purposes, software, verified, signer, evidence, campaign } = sighting
  return shownTo(sight, {
    ...outlineOf(sighting),
    verdict: sighting.verdict as z.output<typeof request>['verdict'],
    agent_id: agent,
    agent_category: category,
    agent_purpose: [...purposes],
    software_id: software,
    verified,
    identity: signer,
    conflicts: [...conflictsIn(evidence.map((kind) => ({ kind })))],
    fingerprints: fingerprintsOf(sighting),
    evidence: [...evidence],
    campaign_id: campaign,
  })
}

const SLICE = 500
const LOOKED_AT_MAX = 20_000
/** If the database is in this process, everything else waits meanwhile. */
const LOOK_MS = 100
/** For each half second. */
const TOLD_AT_ONCE = 25

/**
 * The filter `address` of requests: an address or a network. A principal that sees only networks cannot find
 * out an address by filtering for it. Throws a Refusal.
 */
function addressFilter(text: string, principal: Principal, publicUrl: string): (address: string) => boolean {
  const range = parseAddressRange(text)
  if (range === null) throw invalid([{ pointer: '/address', detail: TAKES }])
  if (sightOf(principal) === 'reduced' && !isShown(range))
    throw insufficientScope(NEEDED, principal, publicUrl)
  const ranges = new AddressRanges([range])
  return (address) => {
    ADDRESS.read(address)
    return ranges.has(ADDRESS)
  }
}

/** Whether the range is at least as large as the networks that are shown. */
function isShown({ isIpv4, length }: AddressRange): boolean {
  return length <= (isIpv4 ? 24 : 48)
}

const TAKES = 'must be an address or a network, such as 203.0.113.7, 203.0.113.0/24 or 2001:db8::/48'
const NEEDED = {
  what: 'a filter narrower than IPv4 /24 or IPv6 /48',
  needs: [['admin']],
} as const
/** Shared by all calls: an address is compared before the next one is read. */
const ADDRESS = new Address()
