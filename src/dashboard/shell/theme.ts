export type Theme = (typeof THEMES)[number]

export const THEMES = ['auto', 'light', 'dark'] as const

export function currentTheme(): Theme {
  const kept = localStorage.getItem(PLACE)
  return THEMES.find((theme) => theme === kept) ?? 'auto'
}

export function chooseTheme(theme: Theme): void {
  localStorage.setItem(PLACE, theme)
  applyTheme()
}

/** `auto` is as the reader's system has it. */
export function applyTheme(): void {
  document.documentElement.dataset['theme'] = currentTheme()
  dispatchEvent(new Event(THEME_CHANGED))
}

/** What is painted and not styled has to be painted again. */
export const THEME_CHANGED = 'gatehouse-theme'
const PLACE = 'gatehouse.theme'
