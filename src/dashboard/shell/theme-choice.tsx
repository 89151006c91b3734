import { useState } from 'preact/hooks'
import { chooseTheme, currentTheme, THEMES, type Theme } from './theme.ts'

export function ThemeChoice() {
  const [theme, setTheme] = useState(currentTheme)
  return (
    <label>
      <span class="hidden">Colours</span>
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

const NAMES: Readonly<Record<Theme, string>> = { auto: 'Colours of the system', light: 'Light', dark: 'Dark' }
