import { Page } from '../../parts/page.tsx'
import { Feed } from './feed.tsx'
import { Now } from './now.tsx'
import { Past } from './past.tsx'

export function Live() {
  return (
    <Page
      title="Live"
      help="verdicts"
      about="Requests as they arrive, with the verdict and the action for each."
    >
      <Now />
      <Feed />
      <Past />
    </Page>
  )
}
