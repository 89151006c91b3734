import * as z from 'zod'
import type { Sighting } from '../../plane/sighting.ts'
import type { Principal } from '../http/access/principal.ts'
import type { ApiContext } from './context.ts'
import { sightOf } from '../intake/personal-data.ts'
import {
  CURSOR_ANSWER,
  CURSOR_FIELDS,
  cursorFor,
  cursorLinks,
  markOf,
  positionIn,
  refusedCursor,
} from '../http/cursor.ts'
import { invalid } from '../http/refusal.ts'
import { time, timeOf } from '../http/schemas.ts'
import { type ApiOperation, operation } from './operation.ts'
import { exportRequests } from './request-export.ts'
import { getRequestEvidence } from './request-evidence.ts'
import { getRequestFacets } from './request-facets.ts'
import { REQUEST_FILTERS, wantedRequests } from './request-filters.ts'
import { request, shownAll } from './request-views.ts'

const listRequests = operation({
  id: 'listRequests',
  method: 'GET',
  path: '/requests',
  tag: 'Statistics',
  summary: 'List or stream requests',
  description:
    'Recorded requests, the newest first or with `order=oldest` the oldest first, as far back as `sightings.retention` keeps them. A rare value of `id`, `app`, `host`, `address`, `agent_id`, `verdict`, `category`, `purpose`, `action`, `rule`, `ja4`, `ja4h`, `proxy` or `campaign_id` is found at once, however many requests there are. Other searches read the requests one after another and stop after about 100 ms: then `stopped_at` says where, and the page may hold few items or none although more follow. The list ends when `next_cursor` is null. With `Accept: text/event-stream`, requests are streamed as they come in.',
  scopes: ['read'],
  reach: 'filtered',
  query: z.strictObject({
    ...REQUEST_FILTERS,
    order: z
      .enum(['newest', 'oldest'])
      .optional()
      .meta({ description: 'Which requests come first. Default: `newest`. Not allowed with a stream.' }),
    ...CURSOR_FIELDS,
  }),
  answer: z.strictObject({
    requests: z.array(request),
    stopped_at: time.nullable().meta({
      description:
        'The search took too long and stopped at requests of this time. It goes on with `next_cursor`. `null`: the page is full, or the list ends.',
    }),
    ...CURSOR_ANSWER,
  }),
  run: async ({ query, target, principal }, management) => {
    const { store, publicUrl } = management
    const { cursor, limit, order, ...wanted } = query
    // A cursor is for one order.
    const mark = markOf('listRequests', order === 'oldest' ? { ...wanted, order } : wanted)
    const [number = null] = positionIn(cursor, mark) ?? []
    const { filter, isWanted } = await wantedRequests(wanted, principal, management)
    const from = checkedNumber(number)
    const { found, next, stoppedAtMs } = await store.sightings.search(filter, isWanted, from, limit, order)
    const next_cursor = next === null ? null : cursorFor(mark, [next])
    return {
      body: {
        requests: await shownAll(found, sightOf(principal), management),
        stopped_at: timeOf(stoppedAtMs),
        ...{ limit, next_cursor },
      },
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
      const { cursor, order, ...wanted } = call.query
      for (const [name, value] of Object.entries({ cursor, order }))
        if (value !== undefined)
          throw invalid([
            { pointer: `/${name}`, detail: 'is only allowed with lists: send Accept: application/json' },
          ])
      const { isWanted, apps } = await wantedRequests(wanted, call.principal, management)
      return (over) => texts(isWanted, { ...call.principal, apps }, management, over)
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
  reach: 'filtered',
  params: z.strictObject({
    id: z.string().max(100).meta({ example: '01a209b9-5d03-7000-8002-190b89a95204' }),
  }),
  answer: request,
  find: ({ params, principal }, { store }) => store.sightings.byId(params.id, principal.apps),
  run: async ({ subject, principal }, management) => {
    const [body] = await shownAll([subject], sightOf(principal), management)
    return { body: body! }
  },
})

export const REQUEST_OPERATIONS: readonly ApiOperation[] = [
  listRequests,
  getRequestFacets,
  exportRequests,
  getRequest,
  getRequestEvidence,
]

/** Throws a Refusal if the position does not come from a cursor of this list. */
function checkedNumber(value: unknown): number | null {
  if (value === null || Number.isSafeInteger(value)) return value as number | null
  throw refusedCursor()
}

/** As Server-Sent Events without an id, because they cannot be replayed. */
async function* texts(
  isWanted: (sighting: Sighting) => boolean,
  principal: Principal,
  management: ApiContext,
  over: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  const sight = sightOf(principal)
  yield 'retry: 2000\n\n'
  for await (const fresh of management.requests.follow(principal.apps, over)) {
    const of = fresh.requests.filter(isWanted)
    const told = of.slice(-TOLD_AT_ONCE)
    const skipped = fresh.skipped + of.length - told.length
    const data = await shownAll(told, sight, management)
    const events = data.map((each) => `event: request\ndata: ${JSON.stringify(each)}\n\n`)
    if (skipped > 0) events.push(`event: skipped\ndata: ${JSON.stringify({ requests: skipped })}\n\n`)
    if (events.length > 0) yield events.join('')
  }
}

/** For each half second. */
const TOLD_AT_ONCE = 25
