import { useRoute } from 'preact-iso'
import { ask } from '../../api/ask.ts'
import type { DeliveryWithBody } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Badge } from '../../parts/badge.tsx'
import { Facts } from '../../parts/facts.tsx'
import { duration } from '../../parts/format.ts'
import { Page } from '../../parts/page.tsx'
import { Preformatted } from '../../parts/preformatted.tsx'
import { Answered, ProblemNote } from '../../parts/states.tsx'
import { FullTime, Time } from '../../parts/time.tsx'
import { COLOUR_OF } from './deliveries.tsx'

export function DeliveryPage() {
  const { params } = useRoute()
  const used = useAsked('getDelivery', { path: { id: params['id']! } })
  return (
    <Page title="Delivery" help="webhooks">
      <Answered used={used}>{(delivery) => <One delivery={delivery} again={used.again} />}</Answered>
    </Page>
  )
}

function One({ delivery, again }: { readonly delivery: DeliveryWithBody; readonly again: () => void }) {
  const doing = useDoing()
  const { id, webhook_id, event_id, event_type, status, log } = delivery
  return (
    <>
      <section class="card" aria-labelledby="which">
        <h2 id="which">{event_type}</h2>
        <Facts
          of={[
            ['State', <Badge key="state" of={COLOUR_OF[status]} text={status} />],
            [
              'Webhook',
              <a key="webhook" href={`/dashboard/webhooks/${webhook_id}`}>
                {webhook_id}
              </a>,
            ],
            [
              'Event',
              event_type === 'test' ? (
                'test'
              ) : (
                <a key="event" href={`/dashboard/events/${event_id}`}>
                  {event_id}
                </a>
              ),
            ],
            [
              'Next attempt',
              delivery.next_attempt_at === null ? null : <Time key="next" at={delivery.next_attempt_at} />,
            ],
            [
              'Finished',
              delivery.finished_at === null ? null : <FullTime key="end" at={delivery.finished_at} />,
            ],
          ]}
        />
        {doing.problem !== null && <ProblemNote problem={doing.problem} />}
        <button
          type="button"
          disabled={doing.isDoing}
          onClick={() =>
            void doing.run(async () => {
              await ask('retryDelivery', { path: { id } })
              again()
            })
          }
        >
          Retry now
        </button>
      </section>
      <section class="card" aria-labelledby="attempts">
        <h2 id="attempts">Attempts</h2>
        {log.length === 0 && <p>None yet.</p>}
        <ol>
          {log.map(({ at, duration_ms, status, error, response }) => (
            <li key={at}>
              <FullTime at={at} />, {duration(duration_ms)}: <strong>{error ?? status}</strong>
              {response !== '' && <Preformatted label="Response" text={response} />}
            </li>
          ))}
        </ol>
      </section>
      <section class="card" aria-labelledby="body">
        <h2 id="body">Request body</h2>
        <Preformatted label="JSON" text={JSON.stringify(delivery.body, null, 2)} />
      </section>
    </>
  )
}
