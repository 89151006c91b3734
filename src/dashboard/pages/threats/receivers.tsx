import type { Webhook } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { Badge } from '../../parts/badge.tsx'
import { Answered } from '../../parts/states.tsx'
import { healthOf } from '../webhooks/webhook-health.ts'

/** Where threats are reported, and whether they arrive. For administrators only. */
export function Receivers() {
  const { answer: me } = useAsked('getMe', {})
  return me?.scopes.includes('admin') === true ? <Webhooks /> : null
}

function Webhooks() {
  const used = useAsked('listWebhooks', { query: { limit: 100 } }, { everyMs: 30_000 })
  return (
    <section class="card" aria-labelledby="receivers">
      <h2 id="receivers">Receivers</h2>
      <Answered used={used}>{({ webhooks }) => <List of={webhooks.filter(isForThreats)} />}</Answered>
    </section>
  )
}

function List({ of }: { readonly of: readonly Webhook[] }) {
  if (of.length === 0)
    return (
      <p>
        No webhook receives threats. <a href="/dashboard/webhooks">Add a webhook</a>
      </p>
    )
  return (
    <ul class="plain">
      {of.map((webhook) => {
        const { state, text } = healthOf(webhook)
        return (
          <li key={webhook.id}>
            <a href={`/dashboard/webhooks/${webhook.id}`}>{hostOf(webhook.url)}</a>{' '}
            <Badge of={state} text={text} />
            {webhook.pending > 0 && ` ${webhook.pending} pending`}
          </li>
        )
      })}
    </ul>
  )
}

function isForThreats({ events }: Webhook): boolean {
  return events.includes('threat_detected')
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url
}
