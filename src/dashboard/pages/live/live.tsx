import { useAsked } from '../../api/use-asked.ts'
import { useChosen } from '../../parts/chosen/app.ts'
import { Page } from '../../parts/page.tsx'
import { Feed } from './feed.tsx'
import { Now } from './now.tsx'

export function Live() {
  const { answer: me } = useAsked('getMe', {})
  const chosen = useChosen()
  const isOfAll = Object.keys(chosen).length === 0
  return (
    <Page
      title="Live"
      help="verdicts"
      about="Requests as they arrive, with the verdict and the action for each."
    >
      {/* It counts the requests to all apps. */}
      {me?.apps === '*' && isOfAll && <Now />}
      <Feed key={JSON.stringify(chosen)} chosen={chosen} />
    </Page>
  )
}
