import type { ComponentChildren } from 'preact'
import { useLocation } from 'preact-iso'
import { signOut } from '../api/session.ts'
import { useAsked } from '../api/use-asked.ts'
import { PAGES } from '../pages.ts'
import icon from '../icon.svg'
import { ThemeChoice } from './theme-choice.tsx'

/** The frame of every page: navigation and the current user. */
export function Shell({ children }: { readonly children: ComponentChildren }) {
  const { path } = useLocation()
  const { answer: me } = useAsked('getMe', {})
  const may = (scope: string | null) =>
    scope === null || me === null || me.scopes.some((own) => own === 'admin' || own === scope)
  return (
    <div class="shell">
      <a class="skip" href="#page">
        Skip to content
      </a>
      <header class="side">
        <a class="brand" href="/dashboard/">
          <img src={icon} alt="" /> Gatehouse
        </a>
        <nav aria-label="Pages">
          <ul class="plain">
            {PAGES.filter(({ scope }) => may(scope)).map((page) => (
              <li key={page.path}>
                <a href={page.path} aria-current={isAt(path, page.path) ? 'page' : undefined}>
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
              Signed in as <strong>{me.name}</strong> ({me.scopes.join(', ')})
            </span>
          )}
          <a href="/docs">API</a>
          <button type="button" onClick={signOut}>
            Sign out
          </button>
        </div>
      </header>
      <main id="page" tabIndex={-1}>
        {children}
      </main>
    </div>
  )
}

function isAt(path: string, page: string): boolean {
  return path === page || (page !== PAGES[0].path && path.startsWith(`${page}/`))
}
