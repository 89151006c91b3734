import * as z from 'zod'
import { DEFAULT_APP } from '../../apps/app.ts'
import { ALL_APPS, APP_LIST_MAX, type AppList, appListOf, isWithin, reaches } from '../../apps/app-scope.ts'
import { didYouMean } from '../../shared/did-you-mean.ts'
import type { Principal } from '../http/access/principal.ts'
import type { Addressed } from '../http/operation.ts'
import { type FieldError, invalid, Refusal } from '../http/refusal.ts'
import type { ApiContext } from './context.ts'

const list = z
  .array(z.string().max(63, 'is longer than 63 characters'))
  .max(APP_LIST_MAX, `must have at most ${APP_LIST_MAX} apps`)

/** The member `apps` of what belongs to apps. */
export const shownApps = z.union([list, z.literal(ALL_APPS)]).meta({
  description: 'The ids of the apps whose objects it may see, or `*`: all apps.',
  example: ['shop'],
})

/** The same member in a request. */
export const wantedApps = z
  .union([list.min(1, 'is empty'), z.literal(ALL_APPS)], 'must be a list of ids of apps, or *')
  .optional()
  .meta({
    description:
      'The ids of the apps whose objects it may see, or `*`: all apps. `default`: requests that matched no app. Default: the apps of the caller, who can only give apps that it has itself.',
    example: ['shop'],
  })

/** Throws a Refusal for apps that the principal does not have. For it, they do not exist. */
export async function appsToGive(
  wanted: AppList | undefined,
  { apps: own }: Principal,
  { apps }: Pick<ApiContext, 'apps'>,
): Promise<AppList> {
  if (wanted === undefined) return appListOf(own)
  if (wanted === ALL_APPS) {
    if (own === ALL_APPS) return wanted
    throw invalid([
      { pointer: '/apps', detail: 'must be a list: these credentials are limited to some apps' },
    ])
  }
  const all = [DEFAULT_APP, ...(await apps.current()).map(({ id }) => id)]
  const known = own === ALL_APPS ? all : all.filter((id) => own.has(id))
  const errors = wanted.flatMap((id, index): FieldError[] =>
    known.includes(id)
      ? []
      : [{ pointer: `/apps/${index}`, detail: `is not the id of an app${didYouMean(id, known)}` }],
  )
  const [first, ...others] = errors
  if (first !== undefined) throw invalid([first, ...others])
  return [...new Set(wanted)]
}

/** Whether there is an app of this id that the principal may see. `default` always exists. */
export async function isVisibleApp(
  id: string,
  { apps: own }: Principal,
  { apps }: Pick<ApiContext, 'apps'>,
): Promise<boolean> {
  return reaches(own, id) && (id === DEFAULT_APP || (await apps.byId(id)) !== null)
}

/** The member or parameter `app`: its id. Throws a Refusal if the principal may not see it. */
export async function checkApp(id: string, principal: Principal, context: Pick<ApiContext, 'apps'>) {
  if (!(await isVisibleApp(id, principal, context))) throw new Refusal('not_found', `app "${id}" not found`)
}

export const appInPath = z.string().meta({
  description: '`default` is the app of requests that match no other.',
})

/** Finds the id of the app in the path, which may have no policy. */
export const ofApp = {
  params: z.strictObject({ app_id: appInPath }),
  find: async ({ params, principal }: Addressed<{ app_id: string }>, context: Pick<ApiContext, 'apps'>) =>
    (await isVisibleApp(params.app_id, principal, context)) ? params.app_id : null,
}

/** An object that belongs to apps, if the principal may see it. Otherwise it does not exist for the principal. */
export function ifVisible<Kept extends { readonly apps: AppList }>(
  found: Kept | null,
  { apps }: Principal,
): Kept | null {
  return found !== null && isWithin(found.apps, apps) ? found : null
}

/** As an answer shows it. */
export function appsOf({ apps }: { readonly apps: AppList }): string[] | typeof ALL_APPS {
  return apps === ALL_APPS ? apps : [...apps]
}
