import { useMemo } from 'preact/hooks'
import { useLocation } from 'preact-iso'

export const WINDOWS = ['1h', '24h', '7d', '30d'] as const

/** A time range that ends now. */
export type Window = (typeof WINDOWS)[number]

/** What the address names; `null`: nothing that is known. */
export function windowIn(text: string | undefined): Window | null {
  return WINDOWS.find((each) => each === text) ?? null
}

/** Of pages that always have one. */
export function useWindow(): Window {
  const { query } = useLocation()
  return windowIn(query['window']) ?? USUAL
}

/** Where the time range of a list begins. Empty: it has none. It does not move while the list is read. */
export function useSince(): { readonly since?: string } {
  const { query } = useLocation()
  const window = windowIn(query['window'])
  return useMemo(() => (window === null ? {} : { since: sinceOf(window) }), [window])
}

export function sinceOf(window: Window): string {
  return new Date(Date.now() - LENGTH_MS[window]).toISOString()
}

/** In a sentence: `the last 7 days`. */
export const WINDOW_WORDS: Readonly<Record<Window, string>> = {
  '1h': 'hour',
  '24h': '24 hours',
  '7d': '7 days',
  '30d': '30 days',
}

export const USUAL: Window = '24h'
const HOUR_MS = 3_600_000
const LENGTH_MS: Readonly<Record<Window, number>> = {
  '1h': HOUR_MS,
  '24h': 24 * HOUR_MS,
  '7d': 7 * 24 * HOUR_MS,
  '30d': 30 * 24 * HOUR_MS,
}
