import { useLocation } from 'preact-iso'

export type Window = (typeof WINDOWS)[number]

/** The time window in the address; the default is a day. */
export function windowIn(text: string | undefined): Window {
  return WINDOWS.find((each) => each === text) ?? '24h'
}

/** Selects the time window, which is part of the address. */
export function WindowChoice({ window }: { readonly window: Window }) {
  const { path, query, route } = useLocation()
  return (
    // biome-ignore lint/a11y/useSemanticElements: nothing of it is sent anywhere
    <span class="group" role="group" aria-label="Time range">
      {WINDOWS.map((each) => (
        <button
          key={each}
          type="button"
          aria-pressed={each === window}
          onClick={() => route(`${path}?${new URLSearchParams({ ...query, window: each })}`, true)}
        >
          {each}
        </button>
      ))}
    </span>
  )
}

export const WINDOWS = ['1h', '24h', '7d', '30d'] as const
