import * as z from 'zod'
import {
  type App,
  APP_HOSTS_MAX,
  APP_LABEL_LENGTH_MAX,
  APP_LABELS_MAX,
  APP_NAME_LENGTH_MAX,
  appIn,
  parseApps,
  QUOTA_MAX,
} from '../../apps/app.ts'
import { ALL_APPS, reaches } from '../../apps/app-scope.ts'
import { didYouMean } from '../../shared/did-you-mean.ts'
import { DocumentFault } from '../../shared/problem.ts'
import { partIn } from '../../store/engine/page.ts'
import type { Principal } from '../http/access/principal.ts'
import { type FieldError, invalid, Refusal } from '../http/refusal.ts'
import { actorOf, type Addressed } from '../http/operation.ts'
import { checkMatch, etagOf } from '../http/precondition.ts'
import { textInQuery, time, timeOf } from '../http/schemas.ts'
import type { ShownApp } from '../publish/app-keeper.ts'
import type { ApiContext } from './context.ts'
import { type ApiOffered, listing, operation } from './operation.ts'

// The schemas only document the members: `parseApps` checks their content, as it checks the settings.

const SLUG = { pattern: '^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$' }
const id = z.string().meta({
  description: '`default` and `other` are reserved.',
  example: 'shop',
  override: SLUG,
})
const name = z.string().meta({ override: { minLength: 1, maxLength: APP_NAME_LENGTH_MAX } })
const team = z.string().meta({ example: 'retail', override: SLUG })
const hosts = z.array(z.string().meta({ example: '*.shop.example' })).meta({
  description:
    'Hosts of its requests, in the form of `proxy.hosts`: a leading `*.` stands for one label. A host belongs to one app.',
  override: { maxItems: APP_HOSTS_MAX },
})
const upstream = z.string().meta({
  description: 'The name of the upstream for its requests. `null`: the default of each proxy.',
  override: { pattern: '^\\w(?:[\\w.-]{0,62}\\w)?$' },
})
const labels = z
  .array(z.string().meta({ override: { minLength: 1, maxLength: APP_LABEL_LENGTH_MAX } }))
  .meta({ override: { maxItems: APP_LABELS_MAX } })
const calls = z.number().meta({ override: { type: 'integer', minimum: 1, maximum: QUOTA_MAX } })
const quota = z
  .strictObject({ minute: calls.optional(), hour: calls.optional(), day: calls.optional() })
  .meta({
    id: 'AppQuota',
    description:
      'The number of calls in each window that all callers that are limited to some apps, this one among them, make together. More are refused (429). `null`: no limit.',
    example: { minute: 600, day: 100_000 },
  })

const app = z
  .strictObject({
    id,
    name,
    team: team.nullable(),
    hosts,
    upstream: upstream.nullable(),
    labels,
    quota: quota.nullable(),
    source: z.enum(['settings', 'api']).meta({
      description: '`settings`: defined by `apps` in the settings, and changed only there.',
    }),
    created_at: time.nullable(),
    updated_at: time.nullable(),
  })
  .meta({ id: 'App' })

const changeable = {
  name: name.nullable().optional().meta({ description: 'Default: the id.' }),
  team: team.nullable().optional(),
  hosts: hosts.optional(),
  upstream: upstream.nullable().optional(),
  labels: labels.optional(),
  quota: quota.nullable().optional(),
}
const appRequest = z.strictObject({ id, ...changeable }).meta({ id: 'AppRequest' })
const appChanges = z.strictObject(changeable).meta({ id: 'AppChanges' })

const SHOP = {
  id: 'shop',
  name: 'Shop',
  team: 'retail',
  hosts: ['shop.example', '*.shop.example'],
  upstream: null,
  labels: ['eu'],
  quota: { minute: 600 },
}
const SHOWN = {
  ...SHOP,
  source: 'api' as const,
  created_at: '2026-11-21T09:30:00.000Z',
  updated_at: '2026-11-21T09:30:00.000Z',
}

const listApps = listing({
  id: 'listApps',
  path: '/apps',
  tag: 'Apps',
  summary: 'List apps',
  description: 'By id. Those of the settings are included.',
  scopes: ['read'],
  reach: 'filtered',
  name: 'apps',
  filters: { team: textInQuery('Only apps of this team.').optional() },
  part: async ({ team }, part, { apps }, { principal }) => {
    const all = (await apps.current()).filter(({ id }) => reaches(principal.apps, id))
    const found = team === undefined ? all : all.filter((each) => each.team === team)
    return partIn(found, ({ id }) => id, part)
  },
  items: { schema: app, show: (apps) => apps.map(shown) },
})

const createApp = operation({
  id: 'createApp',
  method: 'POST',
  path: '/apps',
  tag: 'Apps',
  summary: 'Create an app',
  description: 'It is in force at all proxies within two seconds.',
  scopes: ['admin'],
  reach: 'organisation',
  body: appRequest,
  status: 201,
  answer: app,
  problems: ['conflict'],
  isIdempotent: true,
  examples: { body: SHOP, answer: SHOWN },
  run: async (call, management) => {
    const made = await management.apps.create(
      parsed(call.body, management),
      actorOf(call),
      management.nowMs(),
    )
    return { body: shown(made) }
  },
})

const byId = {
  params: z.strictObject({ app_id: z.string() }),
  find: async ({ params, principal }: Addressed<{ app_id: string }>, { apps }: ApiContext) =>
    reaches(principal.apps, params.app_id) ? apps.byId(params.app_id) : null,
}

const getApp = operation({
  id: 'getApp',
  method: 'GET',
  path: '/apps/{app_id}',
  tag: 'Apps',
  summary: 'Get an app',
  description: 'Send its `ETag` as `If-Match` to change it only if it is unchanged.',
  scopes: ['read'],
  reach: 'filtered',
  ...byId,
  answer: app,
  examples: { answer: SHOWN },
  run: ({ subject }) => ({ body: shown(subject) }),
})

const updateApp = operation({
  id: 'updateApp',
  method: 'PATCH',
  path: '/apps/{app_id}',
  tag: 'Apps',
  summary: 'Change an app',
  description:
    'Omitted fields are unchanged, and `null` restores the default. `If-Match` is supported. Callers that are limited to some apps change only `name` and `labels`: the others decide whose requests belong to the app, and its quota. An app of the settings is changed only there (409).',
  scopes: ['admin'],
  reach: 'filtered',
  ...byId,
  body: appChanges,
  answer: app,
  problems: ['conflict', 'precondition_failed', 'needs_all_apps'],
  examples: { body: { labels: ['eu'] }, answer: SHOWN },
  run: async (call, management) => {
    checkChange(call.body, call.principal)
    const change = (before: ShownApp) => {
      checkMatch(call.ifMatch, etagOf(shown(before)))
      return parsed({ ...appIn(before), ...call.body }, management)
    }
    const { id } = call.subject
    const after = await management.apps.update(id, change, actorOf(call), management.nowMs())
    return { body: shown(after) }
  },
})

const deleteApp = operation({
  id: 'deleteApp',
  method: 'DELETE',
  path: '/apps/{app_id}',
  tag: 'Apps',
  summary: 'Delete an app',
  description:
    'Its policy and all its versions are deleted with it, and its later requests belong to no app. `If-Match` is supported. An app of the settings is deleted only there (409).',
  scopes: ['admin'],
  reach: 'organisation',
  ...byId,
  status: 204,
  problems: ['conflict', 'precondition_failed'],
  run: async (call, { apps, nowMs }) => {
    const check = (before: ShownApp) => checkMatch(call.ifMatch, etagOf(shown(before)))
    await apps.remove(call.subject.id, check, actorOf(call), nowMs())
    return { body: null }
  },
})

export const APP_OPERATIONS: readonly ApiOffered[] = [listApps, createApp, getApp, updateApp, deleteApp]

/** Hosts, upstream and team decide which requests a team sees, and the quota limits the team, so only callers with all apps change them. */
function checkChange(body: z.output<typeof appChanges>, { apps }: Principal): void {
  const field = apps === ALL_APPS ? undefined : ORGANISATIONS.find((each) => each in body)
  if (field !== undefined)
    throw new Refusal('needs_all_apps', `these credentials are limited to some apps: leave out ${field}`)
}

const ORGANISATIONS = ['hosts', 'upstream', 'team', 'quota'] as const

/** Throws a Refusal with every problem of the app. */
function parsed(body: object, { upstreams }: ApiContext): App {
  const problems: FieldError[] = []
  try {
    const [app] = parseApps([body])
    const { upstream } = app!
    if (upstream === null || upstreams === null || upstreams.includes(upstream)) return app!
    const detail = `is not the name of an upstream${didYouMean(upstream, upstreams)}`
    problems.push({ pointer: '/upstream', detail })
  } catch (error) {
    if (!(error instanceof DocumentFault)) throw error
    // The pointers begin at the list.
    for (const { pointer, what } of error.problems.slice(0, ERRORS_MAX))
      problems.push({ pointer: pointer.slice('/0'.length), detail: what })
  }
  throw invalid(problems as [FieldError, ...FieldError[]])
}

function shown({ createdAtMs, updatedAtMs, ...app }: ShownApp): z.output<typeof app> {
  const { id, name, team, hosts, upstream, labels, quota, source } = app
  return {
    ...{ id, name, team, hosts: [...hosts], upstream, labels: [...labels], quota, source },
    created_at: timeOf(createdAtMs),
    updated_at: timeOf(updatedAtMs),
  }
}

/** A longer list does not help the client. */
const ERRORS_MAX = 100
