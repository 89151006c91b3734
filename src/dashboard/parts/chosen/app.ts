import { useLocation } from 'preact-iso'

/** The app of requests that match no other. */
export const DEFAULT_APP = 'default'

/** The part of an API query for one app, or for the apps of a team. Empty: all apps of the user. */
export interface Chosen {
  readonly app?: string
  readonly team?: string
}

/** What the address names, for pages that show some apps or all of them. An app wins over a team. */
export function useChosen(): Chosen {
  const { query } = useLocation()
  return chosenIn(query)
}

export function chosenIn({ app = '', team = '' }: Readonly<Record<string, string>>): Chosen {
  if (app !== '') return { app }
  return team === '' ? {} : { team }
}

/** The app that the address names. `null`: none. */
export function useChosenApp(): string | null {
  return useChosen().app ?? null
}

/** An address with a query, without its empty members. */
export function withQuery(path: string, query: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(query).filter((each): each is [string, string] => Boolean(each[1]))
  const text = new URLSearchParams(given).toString()
  return text === '' ? path : `${path}?${text}`
}

/** The address of a page, or of a list with filters, for the same app. */
export function withApp(
  path: string,
  app: string | null,
  filters: Readonly<Record<string, string>> = {},
): string {
  return withQuery(path, { ...(app !== null && { app }), ...filters })
}

/** The page that explains a recorded request with the policy of its app. */
export function explainedAt({ id, app }: { readonly id: string; readonly app: string }): string {
  return withApp('/dashboard/policy', app === DEFAULT_APP ? null : app, { request: id })
}
