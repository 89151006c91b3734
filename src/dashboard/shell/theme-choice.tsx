import { useState } from 'preact/hooks'
import { chooseTheme, currentTheme, THEMES, type Theme } from './theme.ts'

export function ThemeChoice() {
  const [theme, setTheme] = useState(currentTheme)
  return (
    <label>
      <span class="hidden">Theme</span>
      <select
        value={theme}
        onChange={({ currentTarget }) => {
          chooseTheme(currentTarget.value as Theme)
          setTheme(currentTheme())
        }}
      >
        {THEMES.map((each) => (
          <option key={each} value={each}>
            {NAMES[each]}
          </option>
        ))}
      </select>
    </label>
  )
}

const NAMES: Readonly<Record<Theme, string>> = {
  auto: 'Theme: system',
  light: 'Theme: light',
  dark: 'Theme: dark',
}
