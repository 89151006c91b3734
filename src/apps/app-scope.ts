/** Apps by id, as they are given to a key, a client, a user, an agent or a webhook. `*`: all apps. */
export type AppList = readonly string[] | '*'

/** The apps that a principal may see, and that a query may read. `*`: the whole installation. */
export type AppScope = ReadonlySet<string> | '*'

export const ALL_APPS = '*'
/** A query names each of them. */
export const APP_LIST_MAX = 200
export const NO_APPS: ReadonlySet<string> = new Set()

export function appScopeOf(list: AppList): AppScope {
  return list === ALL_APPS ? list : new Set(list)
}

export function appListOf(scope: AppScope): AppList {
  return scope === ALL_APPS ? scope : [...scope]
}

/** `app`: of an object that is about one app. Objects that are about no app belong to the organisation. */
export function reaches(scope: AppScope, app: string | null): boolean {
  return scope === ALL_APPS || (app !== null && scope.has(app))
}

/** Whether each of these apps is in the scope. A list without apps belongs to the organisation. */
export function isWithin(list: AppList, scope: AppScope): boolean {
  return scope === ALL_APPS || (list !== ALL_APPS && list.length > 0 && list.every((app) => scope.has(app)))
}

/** The apps that are in one of them. */
export function joinedApps(one: AppList, other: AppList): AppList {
  return one === ALL_APPS || other === ALL_APPS ? ALL_APPS : [...new Set([...one, ...other])]
}

/** The apps that are in both. */
export function sharedScope(one: AppScope, other: AppScope): AppScope {
  if (one === ALL_APPS) return other
  if (other === ALL_APPS) return one
  return new Set([...one].filter((app) => other.has(app)))
}

/** Whether the scope now has all apps of an earlier one. */
export function hasAllOf(now: AppScope, earlier: AppScope): boolean {
  return now === ALL_APPS || (earlier !== ALL_APPS && [...earlier].every((app) => now.has(app)))
}

/** The part of a scope that a filter names; `undefined`: all of it. */
export function narrowed(scope: AppScope, app: string | undefined): AppScope {
  return app === undefined ? scope : sharedScope(scope, new Set([app]))
}
