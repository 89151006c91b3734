import { Page } from '../../parts/page.tsx'
import { Feed } from './feed.tsx'
import { Now } from './now.tsx'
import { Past } from './past.tsx'

export function Live() {
  return (
    <Page title="Live" about="Who is at the door, what they are taken for, and what is done about it.">
      <Now />
      <Feed />
      <Past />
    </Page>
  )
}
