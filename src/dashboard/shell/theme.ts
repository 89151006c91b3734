import { IN_BROWSER } from '../parts/kept.ts'

export type Theme = (typeof THEMES)[number]

export const THEMES = ['auto', 'light', 'dark'] as const

export function currentTheme(): Theme {
  const kept = IN_BROWSER.get(PLACE)
  return THEMES.find((theme) => theme === kept) ?? 'auto'
}

export function chooseTheme(theme: Theme): void {
  IN_BROWSER.set(PLACE, theme)
  applyTheme()
}

/** `auto` follows the reader's system. */
export function applyTheme(): void {
  document.documentElement.dataset['theme'] = currentTheme()
  dispatchEvent(new Event(THEME_CHANGED))
}

/** Canvas drawings do not follow style changes, so they listen to this event. */
export const THEME_CHANGED = 'gatehouse-theme'
const PLACE = 'gatehouse.theme'
