import { useRoute } from 'preact-iso'
import { useAsked } from '../../api/use-asked.ts'
import { Details } from '../../parts/details.tsx'
import { Page } from '../../parts/page.tsx'
import { Preformatted } from '../../parts/preformatted.tsx'
import { Answered } from '../../parts/states.tsx'
import { FullTime } from '../../parts/time.tsx'
import { subjectOf, TITLES } from './event-words.ts'

export function EventPage() {
  const { params } = useRoute()
  const used = useAsked('getEvent', { path: { id: params['id']! } })
  return (
    <Page title="Event" help="events" about={<a href="/dashboard/events">All events</a>}>
      <Answered used={used}>
        {(event) => (
          <section class="card" aria-labelledby="what">
            <h2 id="what">
              {TITLES[event.type]}: {subjectOf(event)}
            </h2>
            <p>
              <FullTime at={event.timestamp} />
            </p>
            <Details of={event.data} />
            <details>
              <summary>JSON</summary>
              <Preformatted label="JSON" text={JSON.stringify(event, null, 2)} />
            </details>
          </section>
        )}
      </Answered>
    </Page>
  )
}
