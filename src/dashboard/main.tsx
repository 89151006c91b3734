import { render } from 'preact'
import { App } from './app.tsx'
import { takeFromAddress } from './api/session.ts'
import { applyTheme } from './shell/theme.ts'

applyTheme()
void takeFromAddress().then((failure) => {
  const place = document.getElementById('app')!
  place.replaceChildren()
  render(<App failure={failure} />, place)
})
