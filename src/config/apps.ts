import {
  type App,
  isSlug,
  NO_ID,
  QUOTA_MAX,
  QUOTA_WINDOWS,
  type QuotaWindow,
  readAppId,
  readApps,
  SLUG_EXPECTED,
} from '../apps/app.ts'
import { type DocumentProblem, Place } from '../shared/problem.ts'
import type { Say } from './inject.ts'
import { integer, type Kind, optional, text } from './kinds.ts'
import { list, section, setting, type ValueOf } from './items.ts'

/** Checked by `checkApps`, which sees all apps. */
const word: Kind<string> = { ...text, read: ({ value }) => value as string }
const slug: Kind<string> = { ...word, takes: 'a-z, 0-9 and -' }
const host: Kind<string> = { ...word, takes: 'host name, *.host name, or address' }
export const appId: Kind<string> = { ...slug, read: readAppId }
/** Also the app `default`. */
export const appInFilter: Kind<string> = {
  ...slug,
  read: (place) => (isSlug(place.value) ? place.value : place.expected(SLUG_EXPECTED)),
}

/** One of `apps`. */
export const APP = section('', {
  id: setting(
    slug,
    undefined,
    `The name in statistics, metrics and filters: ${SLUG_EXPECTED}. \`default\` and \`other\` are reserved.`,
  ),
  name: setting(optional(word), null, 'The name for people. `null`: the id.'),
  team: setting(optional(slug), null, 'The team that owns the app.'),
  hosts: list(
    host,
    'Hosts of the app, as in `proxy.hosts`; at most 256. A host without `*.` wins over one with it. A host belongs to one app only.',
  ),
  upstream: setting(
    optional(word),
    null,
    'The name of the upstream for requests to this app that no rule routes elsewhere. `null`: the first one of each proxy.',
  ),
  labels: list(word, 'Up to 16 words about the app, of at most 64 characters each.'),
  quota: section(
    'The number of API calls in each window that all callers that are limited to some apps, this one among them, make together. More are refused (429).',
    { minute: window('minute'), hour: window('hour'), day: window('day') },
  ),
})

function window(name: QuotaWindow) {
  return setting(optional(integer(1, QUOTA_MAX)), null, `Calls per ${name}. \`null\`: no limit.`)
}

/** Reports invalid apps, and upstreams that are not in `upstreams`; `null`: the proxies have their own. */
export function checkApps(apps: readonly object[], upstreams: readonly unknown[] | null, refuse: Say): void {
  const problems: DocumentProblem[] = []
  const read = readApps(Place.of(apps, problems))
  // A setting that is missing is reported already.
  for (const { pointer, what } of problems) if (what !== NO_ID) refuse(`/apps${pointer}`, what)
  if (upstreams === null) return
  for (const [index, { upstream }] of read.entries())
    if (upstream !== null && !upstreams.includes(upstream))
      refuse(`/apps/${index}/upstream`, `is "${upstream}", which is not in proxy.upstreams; add it there`)
}

export function appsConfig(apps: readonly ValueOf<typeof APP>[]): readonly App[] {
  return apps.map((app) => ({ ...app, name: app.name ?? app.id, quota: quotaIn(app) }))
}

function quotaIn({ quota }: ValueOf<typeof APP>): App['quota'] {
  const limits = QUOTA_WINDOWS.flatMap((name) => (quota[name] === null ? [] : [[name, quota[name]] as const]))
  return limits.length === 0 ? null : Object.fromEntries(limits)
}
