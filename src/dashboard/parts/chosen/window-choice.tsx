import { useLocation } from 'preact-iso'
import { withQuery } from './app.ts'
import { USUAL, windowIn, WINDOWS } from './window.ts'

interface Props {
  /** Offers no limit, which is the default. Otherwise the default is a day. */
  readonly isOptional?: boolean
}

/** Selects the time range, which is part of the address. */
export function WindowChoice({ isOptional = false }: Props) {
  const { path, query, route } = useLocation()
  const chosen = windowIn(query['window']) ?? (isOptional ? '' : USUAL)
  const choices = isOptional ? (['', ...WINDOWS] as const) : WINDOWS
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset belongs to a form, and these buttons send none
    <span class="group" role="group" aria-label="Time range">
      {choices.map((each) => (
        <button
          key={each}
          type="button"
          aria-pressed={each === chosen}
          onClick={() => route(withQuery(path, { ...query, window: each }), true)}
        >
          {each === '' ? 'all' : each}
        </button>
      ))}
    </span>
  )
}
