import { useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { IN_BROWSER } from '../../parts/kept.ts'

interface View {
  readonly name: string
  /** The query of the address. */
  readonly query: string
}

/** Filters that the user saved under a name, in this browser. */
export function SavedViews() {
  const { path, query } = useLocation()
  const [views, setViews] = useState(savedViews)
  const current = new URLSearchParams(query).toString()
  const change = (next: readonly View[]) => {
    setViews(next)
    IN_BROWSER.set(PLACE, JSON.stringify(next))
  }
  return (
    <details class="views">
      <summary>Saved views{views.length > 0 && ` (${views.length})`}</summary>
      {views.length > 0 && (
        <ul class="plain">
          {views.map((view) => (
            <li key={view.name}>
              <a
                href={view.query === '' ? path : `${path}?${view.query}`}
                aria-current={view.query === current ? 'true' : undefined}
              >
                {view.name}
              </a>{' '}
              <button
                type="button"
                class="quiet"
                aria-label={`Delete the view ${view.name}`}
                onClick={() => change(views.filter(({ name }) => name !== view.name))}
              >
                Delete
              </button>
            </li>
          ))}
        </ul>
      )}
      <form
        class="find"
        onSubmit={(event) => {
          event.preventDefault()
          const form = event.currentTarget
          const name = String(new FormData(form).get('name')).trim()
          if (name === '') return
          const others = views.filter((view) => view.name !== name)
          change([...others, { name, query: current }].slice(-VIEWS_MAX))
          form.reset()
        }}
      >
        <label for="view-name">Save these filters as</label>
        <input id="view-name" name="name" maxLength={60} required autocomplete="off" />
        <button type="submit">Save</button>
      </form>
    </details>
  )
}

function savedViews(): readonly View[] {
  try {
    const views: unknown = JSON.parse(IN_BROWSER.get(PLACE) ?? '[]')
    return Array.isArray(views) ? views.filter(isView).slice(-VIEWS_MAX) : []
  } catch {
    return []
  }
}

function isView(value: unknown): value is View {
  const { name, query } = (value ?? {}) as Partial<Record<keyof View, unknown>>
  return typeof name === 'string' && typeof query === 'string'
}

const PLACE = 'gatehouse.traffic-views'
const VIEWS_MAX = 50
