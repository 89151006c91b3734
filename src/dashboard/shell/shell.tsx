import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ErrorBoundary, lazy, useLocation } from 'preact-iso'
import { signOut } from '../api/session.ts'
import { useAsked } from '../api/use-asked.ts'
import { type PageEntry, PAGES } from '../pages.ts'
import { type Chosen, chosenIn, withQuery } from '../parts/chosen/app.ts'
import { windowIn } from '../parts/chosen/window.ts'
import { WindowChoice } from '../parts/chosen/window-choice.tsx'
import icon from '../icon.svg'
import { AppChoice } from './app-choice.tsx'
import { ThemeChoice } from './theme-choice.tsx'
import { Tools } from './tools.tsx'
import { useTour } from './tour-start.ts'

/** The frame of every page: navigation and the current user. */
export function Shell({ children }: { readonly children: ComponentChildren }) {
  const { path, query } = useLocation()
  const { answer: me } = useAsked('getMe', {})
  const nav = useRef<HTMLElement>(null)
  // On a phone, the navigation is one line that is scrolled sideways. `me` decides which pages it has.
  useEffect(() => {
    const current = nav.current?.querySelector<HTMLElement>('[aria-current]')
    if (current && nav.current)
      nav.current.scrollLeft = current.offsetLeft - (nav.current.clientWidth - current.offsetWidth) / 2
  }, [path, me])
  const { tour, endTour } = useTour(path === PAGES[0].path)
  const [toured, setToured] = useState('')
  const page = PAGES.find((page) => page.path === path)
  const isByApp = page?.isByApp ?? false
  // Kept on the way through pages that show neither.
  const chosen = useRef<Chosen>({})
  const window = useRef<string | undefined>(undefined)
  const given = chosenIn(query)
  // A page for one app or the organisation has no teams.
  const isOfTeam = page?.withoutApp !== undefined && chosen.current.team !== undefined
  if (isByApp && !(isOfTeam && given.app === undefined)) chosen.current = given
  if (page?.range !== undefined) window.current = windowIn(query['window']) ?? undefined
  const may = ({ scope, isForAllApps = false }: PageEntry) =>
    me === null ||
    ((scope === null || me.scopes.some((own) => own === 'admin' || own === scope)) &&
      (!isForAllApps || me.apps === '*'))
  const isReader = me?.scopes.some((own) => own === 'admin' || own === 'read') ?? false
  const pages = PAGES.filter(may).map((page) => ({
    title: page.title,
    path: page.path,
    href: withQuery(page.path, addressOf(page, chosen.current, window.current)),
  }))
  return (
    <div class="shell">
      <a class="skip" href="#page">
        Skip to content
      </a>
      <header class="side">
        <a class="brand" href="/dashboard/">
          <img src={icon} alt="" /> <span>Gatehouse</span>
        </a>
        <Tools pages={pages} isReader={isReader} />
        <nav aria-label="Pages" ref={nav}>
          <ul class="plain">
            {pages.map((page) => (
              <li key={page.path}>
                <a
                  href={page.href}
                  class={tour !== null && page.path === toured ? 'toured' : undefined}
                  aria-current={isAt(path, page.path) ? 'page' : undefined}
                >
                  {page.title}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div class="foot">
          <ThemeChoice />
          {me !== null && (
            <span class="who">
              Signed in as <strong>{me.name}</strong> ({me.scopes.join(', ')}
              {me.apps === '*' ? '' : `; apps: ${me.apps.join(', ')}`})
            </span>
          )}
          <a href="/docs">API</a>
          <button type="button" onClick={signOut}>
            Sign out
          </button>
        </div>
      </header>
      <ErrorBoundary>
        {tour !== null && (
          <Tour key={tour} pages={pages} isAsked={tour === 'asked'} show={setToured} end={endTour} />
        )}
      </ErrorBoundary>
      <main id="page" tabIndex={-1}>
        {(isByApp || page?.range !== undefined) && me !== null && (
          <div class="reach">
            {isByApp && <AppChoice chosen={chosen.current} own={me.apps} all={page?.withoutApp ?? null} />}
            {page?.range !== undefined && <WindowChoice isOptional={page.range === 'optional'} />}
          </div>
        )}
        {children}
      </main>
    </div>
  )
}

/** What a page takes over from the page before. */
function addressOf(
  { isByApp = false, withoutApp, range }: PageEntry,
  { app, team }: Chosen,
  window: string | undefined,
): Readonly<Record<string, string | undefined>> {
  return {
    app: isByApp ? app : undefined,
    team: isByApp && withoutApp === undefined ? team : undefined,
    window: range === undefined ? undefined : window,
  }
}

function isAt(path: string, page: string): boolean {
  return path === page || (page !== PAGES[0].path && path.startsWith(`${page}/`))
}

const Tour = lazy(() => import('../tour/tour.tsx').then(({ Tour }) => Tour))
