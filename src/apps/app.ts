import { DocumentFault, type DocumentProblem, Place, shown } from '../shared/problem.ts'
import { asciiHint, HOST_PATTERN_EXPECTED, hostPatternKey, isHostPattern } from '../wire/host.ts'

/** One of the apps behind the proxies. */
export interface App {
  readonly id: string
  /** For people. */
  readonly name: string
  readonly team: string | null
  /** Patterns like those of `proxy.hosts`, as written. */
  readonly hosts: readonly string[]
  /** The name of the upstream for its requests; `null`: the default of each proxy. */
  readonly upstream: string | null
  readonly labels: readonly string[]
  /** For calls of the API. `null`: none. Proxies do not get it. */
  readonly quota: AppQuota | null
}

/** How many calls all callers that are limited to some apps, this one among them, make together in each window. */
export type AppQuota = Readonly<Partial<Record<QuotaWindow, number>>>
export type QuotaWindow = (typeof QUOTA_WINDOWS)[number]
export const QUOTA_WINDOWS = ['minute', 'hour', 'day'] as const
export const QUOTA_MAX = 1_000_000_000

/** The app of requests that match no other. It cannot be defined. */
export const DEFAULT_APP = 'default'
/** Reserved for the sum of apps that are not listed one by one. It cannot be defined. */
export const OTHER_APPS = 'other'

export const APPS_MAX = 10_000
export const APP_HOSTS_MAX = 256
/** Of all apps together: every proxy holds them. */
export const ALL_HOSTS_MAX = 50_000
export const APP_LABELS_MAX = 16
export const APP_LABEL_LENGTH_MAX = 64
export const APP_NAME_LENGTH_MAX = 128

/** A form for ids of apps and teams that is also a DNS label and a Kubernetes name. */
export function isSlug(value: unknown): value is string {
  return typeof value === 'string' && SLUG.test(value)
}

/** Throws a DocumentFault with all problems of an untrusted list of apps. */
export function parseApps(value: unknown): readonly App[] {
  return parsed(value, false)
}

/** The same for a list that was accepted before, possibly by a later version with more members. */
export function parseAcceptedApps(value: unknown): readonly App[] {
  return parsed(value, true)
}

function parsed(value: unknown, isFromLater: boolean): readonly App[] {
  const problems: DocumentProblem[] = []
  const apps = readApps(Place.of(value, problems, isFromLater))
  if (problems.length > 0) throw new DocumentFault('APPS_INVALID', problems)
  return apps
}

/** Reports all problems at their places. With problems, the result is not for use. `more`: members that the caller reads. */
export function readApps(place: Place, more: readonly string[] = []): readonly App[] {
  const { value } = place
  if (!Array.isArray(value)) return place.expected('a list of apps') ?? NONE
  if (value.length === 0) return NONE
  if (value.length > APPS_MAX) return place.refuse(`has ${value.length} apps; at most ${APPS_MAX}`) ?? NONE
  const items = place.items()
  const apps = items.map((item) => readApp(item, more))
  const hosts = apps.reduce((count, app) => count + app.hosts.length, 0)
  if (hosts > ALL_HOSTS_MAX) place.refuse(`has ${hosts} hosts in all; at most ${ALL_HOSTS_MAX}`)
  refuseTwice(items, apps)
  return apps
}

/** The app of a record that has more members. */
export function appIn({ id, name, team, hosts, upstream, labels, quota }: App): App {
  return { id, name, team, hosts, upstream, labels, quota }
}

/** Reports all problems of one app. With problems, the result is not for use. */
function readApp(at: Place, more: readonly string[]): App {
  const given = at.isMapping ? (at.value as { readonly id?: unknown }).id : null
  const place = typeof given === 'string' ? at.inside(within(given)) : at
  const members = place.members([...MEMBERS, ...more])
  const member = (name: keyof App): Place | null => {
    const found = members.get(name)
    return (found?.value ?? null) === null ? null : found!
  }
  if (place.isMapping && member('id') === null) place.refuse(NO_ID)
  const id = readId(member('id'))
  return {
    id,
    name: readText(member('name'), APP_NAME_LENGTH_MAX) ?? id,
    team: readSlug(member('team')),
    hosts: readList(member('hosts'), APP_HOSTS_MAX, readHost),
    upstream: readUpstream(member('upstream')),
    labels: readList(member('labels'), APP_LABELS_MAX, (label) => readText(label, APP_LABEL_LENGTH_MAX)),
    quota: readQuota(member('quota')),
  }
}

/** An id names one app, and a host belongs to one app. */
function refuseTwice(items: readonly Place[], apps: readonly App[]): void {
  const ids = new Set<string>()
  const owners = new Map<string, string>()
  for (const [index, { id, hosts }] of apps.entries()) {
    if (id === '') continue
    const refuse = (what: string) => items[index]!.inside(within(id)).refuse(what)
    if (ids.has(id)) refuse('is defined twice; each app needs a unique id')
    ids.add(id)
    for (const host of hosts) {
      const key = hostPatternKey(host)
      const owner = owners.get(key)
      if (owner === undefined) owners.set(key, id)
      else
        refuse(
          `the host ${shown(host)} also belongs to ${owner === id ? 'it' : within(owner)}; remove one of them`,
        )
    }
  }
}

function readId(place: Place | null): string {
  return (place === null ? null : readAppId(place)) ?? ''
}

/** The id of an app that may be defined. */
export function readAppId(place: Place): string | null {
  const id = readSlug(place)
  return id !== null && RESERVED.includes(id)
    ? place.refuse(`${shown(id)} is reserved; choose another id`)
    : id
}

function readSlug(place: Place | null): string | null {
  if (place === null) return null
  return isSlug(place.value) ? place.value : place.expected(SLUG_EXPECTED)
}

function readHost(place: Place): string | null {
  const { value } = place
  if (typeof value !== 'string') return place.expected(HOST_PATTERN_EXPECTED)
  return isHostPattern(value) ? value : place.expected(HOST_PATTERN_EXPECTED + asciiHint(value))
}

function readUpstream(place: Place | null): string | null {
  if (place === null) return null
  const { value } = place
  return typeof value === 'string' && UPSTREAM_NAME.test(value)
    ? value
    : place.expected('the name of an upstream')
}

function readQuota(place: Place | null): AppQuota | null {
  const windows = place?.members(QUOTA_WINDOWS)
  const limits = QUOTA_WINDOWS.flatMap((window) => {
    const member = windows?.get(window)
    const count = (member?.value ?? null) === null ? null : member!.integer(1, QUOTA_MAX)
    return count === null ? [] : [[window, count] as const]
  })
  return limits.length === 0 ? null : Object.fromEntries(limits)
}

function readText(place: Place | null, lengthMax: number): string | null {
  const text = place?.text('text', lengthMax) ?? null
  return text !== null && CONTROL.test(text) ? place!.refuse('contains a control character') : text
}

function readList(
  place: Place | null,
  countMax: number,
  read: (item: Place) => string | null,
): readonly string[] {
  const { value } = place ?? { value: NONE }
  if (Array.isArray(value) && value.length === 0) return NONE
  if (Array.isArray(value) && value.length > countMax)
    return place!.refuse(`has ${value.length} items; at most ${countMax}`) ?? NONE
  return place!.items().flatMap((item) => read(item) ?? NONE)
}

function within(id: string): string {
  return `app ${shown(id)}`
}

export const NO_ID = 'has no id'
export const SLUG = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
export const SLUG_EXPECTED = 'up to 63 letters a-z, digits and hyphens, without a hyphen at either end'
/** As in `proxy.upstreams`. */
const UPSTREAM_NAME = /^\w(?:[\w.-]{0,62}\w)?$/
const CONTROL = /\p{Cc}/u
const RESERVED: readonly string[] = [DEFAULT_APP, OTHER_APPS]
const MEMBERS = ['id', 'name', 'team', 'hosts', 'upstream', 'labels', 'quota']
const NONE: readonly never[] = []
