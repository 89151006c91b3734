import * as z from 'zod'
import { ALL_APPS } from '../../apps/app-scope.ts'
import { CATEGORIES, type Purpose, PURPOSES } from '../../classify/known/software.ts'
import type { EventRecord } from '../../store/events/events.ts'
import { EVENT_TYPES, SEVERITIES } from '../../store/engine/tables/events.ts'
import { type EventFilter, severitiesFrom } from '../events/event-filter.ts'
import { type EventStart, type EventView, eventTexts, trafficTexts } from '../events/event-texts.ts'
import { appsOfTeam, TEAM_FILTER } from './app-filters.ts'
import type { ApiContext } from './context.ts'
import { type Sight, sightOf } from '../intake/personal-data.ts'
import { invalid } from '../http/refusal.ts'
import { knowledgeOf } from '../judging/detection.ts'
import { shownEvent } from '../events/shown-event.ts'
import { softwareIdsOf } from './software-id.ts'
import type { Call } from '../http/operation.ts'
import { type ApiOffered, listing, operation } from './operation.ts'
import { severalIn, severalInQuery, textInQuery, time, timeInQuery } from '../http/schemas.ts'

const TRAFFIC = 'traffic'

const event = z
  .strictObject({
    id: z.string().meta({ example: 'evt_x7c1Jq0aT5b2Lw9k' }),
    type: z.enum(EVENT_TYPES),
    timestamp: time,
    data: z.record(z.string(), z.unknown()).meta({
      description:
        'The same as webhooks get. `app`: the id of the app that it is about, or `null`. Without the scope `admin`, addresses are shown as networks (IPv4 /24, IPv6 /48), and parts of paths and User-Agents that look like secrets are redacted.',
    }),
  })
  .meta({ id: 'Event' })

const filters = {
  types: severalInQuery(
    [...EVENT_TYPES, TRAFFIC],
    'Only these types, separated by commas. `traffic` is sent only in streams, and only if requested: once a second, the number of requests received.',
  ),
  category: severalInQuery(CATEGORIES, 'Only events about agents of these categories, separated by commas.'),
  purpose: severalInQuery(
    PURPOSES,
    'Only events about agents with one of these published purposes, separated by commas. The purposes are those of the signatures in use.',
  ),
  agent: textInQuery('Only events about these agents, by id, name or alias, separated by commas.', 2_000)
    .transform(severalIn)
    .optional(),
  app: textInQuery(
    'Only events about these apps, by id, separated by commas. Events that are not about one app do not pass.',
    2_000,
  )
    .transform(severalIn)
    .optional(),
  ...TEAM_FILTER,
  case_id: textInQuery('Only the events of this case. Not allowed with a stream.').optional(),
  min_severity: z.enum(SEVERITIES).optional().meta({
    description: 'Only threats of at least this severity. Events without a severity pass.',
  }),
  min_confidence: z
    .string()
    .regex(/^(?:0(?:\.\d{1,9})?|1(?:\.0{1,9})?)$/, 'must be a number from 0 to 1')
    .transform(Number)
    .optional()
    .meta({
      description: 'Minimum confidence, from 0 to 1. Events without a confidence pass.',
    }),
  since: timeInQuery('Only events from this time on. A stream begins there.'),
  until: timeInQuery('Only events before this time. Not allowed with a stream.'),
  last_event_id: z
    .string()
    .regex(/^(?:\d{1,15}|evt_[\w-]{1,64})$/, 'is not a valid event id')
    .optional()
    .meta({
      description:
        'The event after which a stream continues, for clients that cannot send the header `Last-Event-ID`, which takes precedence. The `id` of a line of the stream, or of an event.',
    }),
}
type Query = z.output<z.ZodObject<typeof filters>>

const listEvents = listing({
  id: 'listEvents',
  path: '/events',
  tag: 'Events',
  summary: 'List or stream events',
  description:
    'The stored events, newest first. With `Accept: text/event-stream`, Server-Sent Events: the stream continues after `Last-Event-ID`, or from `since`, or from now on. It ends after ten minutes, or when the key or token expires. Clients reconnect by themselves.',
  scopes: ['read'],
  reach: 'filtered',
  name: 'events',
  filters,
  part: async (query, part, management, { principal }) => {
    if (query.last_event_id !== undefined)
      throw invalid([
        { pointer: '/last_event_id', detail: 'is only allowed with streams: send Accept: text/event-stream' },
      ])
    if (query.types?.includes(TRAFFIC) === true)
      throw invalid([
        {
          pointer: '/types',
          detail: 'contains traffic, which is only sent in streams: send Accept: text/event-stream',
        },
      ])
    const { minSeverity, ...wanted } = await filterOf(query, management)
    const severities = minSeverity === null ? null : severitiesFrom(minSeverity)
    const [sinceMs, untilMs] = [msOf(query.since), msOf(query.until)]
    const caseId = query.case_id ?? null
    return management.store.events.list(
      part,
      { ...wanted, severities, sinceMs, untilMs, caseId },
      principal.apps,
    )
  },
  items: { schema: event, show: (events, _, principal) => shownEvents(events, sightOf(principal)) },
  stream: {
    hasIds: true,
    description:
      'Each event has an `id` to continue after, its type as `event`, and as `data` the same object as in a list. The first message is `position`, or `reset` if some events after the given id were deleted (`forgotten`) or the id is unknown (`unknown`). After `reset`, all stored events follow. `position` is repeated if no matching event has occurred for long. `traffic` has no `id`.',
    example:
      'retry: 2000\nid: 4711\nevent: position\ndata: {"last_event_id":"4711"}\n\nid: 4712\nevent: new_agent\ndata: {"id":"evt_x7c1Jq0aT5b2Lw9k","type":"new_agent","timestamp":"2026-11-21T09:30:00.000Z","data":{}}\n\n',
    begin: async (call: Call<unknown, Query, unknown, unknown>, management) => {
      checkOfStream(call.target)
      const start = await startOf(call, management)
      const { principal, query } = call
      if (query.types?.includes(TRAFFIC) === true && principal.apps !== ALL_APPS)
        throw invalid([
          { pointer: '/types', detail: 'contains traffic, which counts the requests to all apps' },
        ])
      const filter = await filterOf(query, management)
      const view = { filter, apps: principal.apps, sight: sightOf(principal) }
      return (over) => textsOf(call.query, start, view, management, over)
    },
  },
})

const getEvent = operation({
  id: 'getEvent',
  method: 'GET',
  path: '/events/{id}',
  tag: 'Events',
  summary: 'Read an event',
  scopes: ['read'],
  reach: 'filtered',
  params: z.strictObject({ id: z.string().max(100).meta({ example: 'evt_x7c1Jq0aT5b2Lw9k' }) }),
  answer: event,
  find: async ({ params, principal }, { store }) => {
    const found = await store.events.byId(params.id, principal.apps)
    // A test event is for a single webhook.
    return found?.type === 'test' ? null : found
  },
  run: ({ subject, principal }) => ({ body: shownEvents([subject], sightOf(principal))[0]! }),
})

export const EVENT_OPERATIONS: readonly ApiOffered[] = [listEvents, getEvent]

function shownEvents(events: readonly EventRecord[], sight: Sight): z.output<typeof event>[] {
  return events.map((each) => shownEvent(each, sight)) as z.output<typeof event>[]
}

function textsOf(
  { types }: Query,
  start: EventStart,
  view: EventView,
  { tail, pulse }: ApiContext,
  over: AbortSignal,
) {
  if (types?.includes(TRAFFIC) !== true) return eventTexts(start, view, tail, over)
  const traffic = trafficTexts(pulse, over)
  const isAlone = view.filter.types.length === 0
  return isAlone ? traffic : merged([eventTexts(start, view, tail, over), traffic])
}

/** Refuses parameters of lists: a stream has no pages and no end. */
function checkOfStream(target: string): void {
  const query = new URLSearchParams(target.split('?', 2)[1] ?? '')
  const wrong = ['page', 'limit', 'cursor', 'until', 'case_id'].find((name) => query.has(name))
  if (wrong !== undefined)
    throw invalid([
      { pointer: `/${wrong}`, detail: 'is only allowed with lists: send no Accept: text/event-stream' },
    ])
}

async function startOf(
  { lastEventId, query, principal }: Call<unknown, Query, unknown, unknown>,
  { store }: ApiContext,
): Promise<EventStart> {
  const { forgotten, last } = await store.events.kept()
  const given = lastEventId ?? query.last_event_id ?? null
  if (given === null) {
    const before = query.since === undefined ? null : await store.events.before(Date.parse(query.since))
    return { position: before ?? last, reset: null }
  }
  if (!filters.last_event_id.safeParse(given).success)
    throw invalid([{ pointer: '/last_event_id', detail: 'is not a valid event id' }])
  const position = given.startsWith('evt_')
    ? (await store.events.byId(given, principal.apps))?.number
    : Number(given)
  if (position === undefined || position > last) return { position: forgotten, reset: 'unknown' }
  return position < forgotten ? { position: forgotten, reset: 'forgotten' } : { position, reset: null }
}

async function filterOf(
  { types, category, purpose, agent, app, team, min_severity, min_confidence }: Query,
  management: ApiContext,
): Promise<EventFilter> {
  return {
    types: (types ?? []).filter((type) => type !== TRAFFIC),
    categories: category ?? [],
    agents: agentsOf(await softwareIdsOf(agent ?? [], management), purpose ?? [], management),
    apps: team === undefined ? (app ?? []) : await teamApps(team, app, management),
    minSeverity: min_severity ?? null,
    minConfidence: min_confidence ?? null,
  }
}

/** The apps of a team, and of these only those of the other filter. */
async function teamApps(
  team: string,
  app: readonly string[] | undefined,
  management: ApiContext,
): Promise<readonly string[]> {
  const found = [...(await appsOfTeam(team, management))].filter((id) => app?.includes(id) ?? true)
  return found.length === 0 ? [NO_ID] : found
}

/** The ids for a filter. An empty list matches every event. */
function agentsOf(
  ids: readonly string[],
  purposes: readonly Purpose[],
  management: ApiContext,
): readonly string[] {
  if (purposes.length === 0) return ids
  const found = knowledgeOf(management).list.filter(
    ({ id, purposes: published }) =>
      (ids.length === 0 || ids.includes(id)) && published.some((each) => purposes.includes(each)),
  )
  return found.length === 0 ? [NO_ID] : found.map(({ id }) => id)
}

/** An id is never empty. */
const NO_ID = ''

function msOf(text: string | undefined): number | null {
  return text === undefined ? null : Date.parse(text)
}

/** Yields values from all sources as they arrive. Ends when any one source ends. */
async function* merged<Value>(
  sources: readonly AsyncGenerator<Value, void, undefined>[],
): AsyncGenerator<Value, void, undefined> {
  const next = async (source: AsyncGenerator<Value, void, undefined>) => ({
    source,
    came: await source.next(),
  })
  const awaited = new Map(sources.map((source) => [source, next(source)]))
  try {
    while (awaited.size > 0) {
      const { source, came } = await Promise.race(awaited.values())
      if (came.done === true) return
      yield came.value
      awaited.set(source, next(source))
    }
  } finally {
    // Ignore late values and late failures.
    for (const late of awaited.values()) late.catch(() => undefined)
    for (const source of sources) source.return().catch(() => undefined)
  }
}
