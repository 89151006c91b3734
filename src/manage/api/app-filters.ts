import { type AppScope, narrowed, sharedScope } from '../../apps/app-scope.ts'
import type { Principal } from '../http/access/principal.ts'
import { textInQuery } from '../http/schemas.ts'
import type { ApiContext } from './context.ts'

/** The filter of every operation that shows the apps of a team together. */
export const TEAM_FILTER = {
  team: textInQuery(
    'Only the apps of this team, as they are today. A team without apps has nothing.',
    63,
  ).optional(),
}

interface AppFilters {
  readonly app?: string | undefined
  readonly team?: string | undefined
}

/** The apps that the filters leave of those that the principal may see. */
export async function filteredApps(
  { app, team }: AppFilters,
  { apps }: Pick<Principal, 'apps'>,
  management: Pick<ApiContext, 'apps'>,
): Promise<AppScope> {
  const named = narrowed(apps, app)
  return team === undefined ? named : sharedScope(named, await appsOfTeam(team, management))
}

export async function appsOfTeam(
  team: string,
  { apps }: Pick<ApiContext, 'apps'>,
): Promise<ReadonlySet<string>> {
  const all = await apps.current()
  return new Set(all.filter((each) => each.team === team).map(({ id }) => id))
}
