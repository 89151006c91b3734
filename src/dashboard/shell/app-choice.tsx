import { useId } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import type { App } from '../api/operations.ts'
import { type Chosen, withQuery } from '../parts/chosen/app.ts'
import { useApps } from '../parts/chosen/use-apps.ts'

interface Props {
  readonly chosen: Chosen
  /** The apps of the user. With all, also requests that match none. */
  readonly own: readonly string[] | '*'
  /** What the page shows without an app, to users of all apps only. `null`: all apps of the user, or those of a team. */
  readonly all: string | null
}

/** Chooses the app that a page shows, or a team for its apps. Without any app, there is nothing to choose. */
export function AppChoice({ chosen, own, all }: Props) {
  const id = useId()
  const { path, query, route } = useLocation()
  const { answer: apps } = useApps()
  if ((apps === null || apps.length === 0) && chosen.app === undefined) return null
  const choices = [
    ...(apps ?? []).map(({ id, name }) => ({ id, name: name === id ? id : `${name} (${id})` })),
    ...(own === '*' || own.includes('default')
      ? [{ id: 'default', name: 'default: requests that match no app' }]
      : []),
  ]
  const { app, team } = chosen
  // An address may name an app that was deleted, and its requests are still there.
  if (app !== undefined && !choices.some((choice) => choice.id === app)) choices.push({ id: app, name: app })
  const teams = all === null ? teamsOf(apps ?? [], team) : []
  const choose = (value: string) => {
    const { app: _app, team: _team, ...rest } = query
    const is = value.startsWith(TEAM) ? { team: value.slice(TEAM.length) } : { app: value }
    route(withQuery(path, { ...rest, ...is }))
  }
  const options = choices.map((choice) => (
    <option key={choice.id} value={choice.id}>
      {choice.name}
    </option>
  ))
  return (
    <span class="app-choice">
      <label for={id}>App</label>
      <select
        id={id}
        value={app ?? (team !== undefined && all === null ? `${TEAM}${team}` : '')}
        onChange={({ currentTarget }) => choose(currentTarget.value)}
      >
        {(all === null || own === '*') && (
          <option value="">{all ?? (own === '*' ? 'all apps' : 'all your apps')}</option>
        )}
        {teams.length === 0 ? (
          options
        ) : (
          <>
            <optgroup label="Teams">
              {teams.map((each) => (
                <option key={each} value={`${TEAM}${each}`}>
                  team {each}
                </option>
              ))}
            </optgroup>
            <optgroup label="Apps">{options}</optgroup>
          </>
        )}
      </select>
    </span>
  )
}

/** With the chosen one, whose last app may be gone. */
function teamsOf(apps: readonly App[], chosen: string | undefined): readonly string[] {
  const teams = apps.flatMap(({ team }) => team ?? [])
  return [...new Set(chosen === undefined ? teams : [...teams, chosen])].sort()
}

/** No id of an app has a colon. */
const TEAM = 'team:'
