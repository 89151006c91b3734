import { useState } from 'preact/hooks'
import { ask } from '../../api/ask.ts'
import type { Webhook, WebhookWithSecret } from '../../api/operations.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Badge } from '../../parts/badge.tsx'
import { Form } from '../../parts/form.tsx'
import { type LongColumn, LongTable, PART_LENGTH } from '../../parts/long-table.tsx'
import { Page } from '../../parts/page.tsx'
import { Secret } from '../../parts/secret.tsx'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { WebhookFields, webhookIn } from './webhook-fields.tsx'
import { healthOf } from './webhook-health.ts'

export function Webhooks() {
  const [isMaking, setMaking] = useState(false)
  const [made, setMade] = useState<WebhookWithSecret | null>(null)
  const [turn, setTurn] = useState(0)
  const load = async (page: number, signal: AbortSignal) => {
    const { webhooks, total } = await ask('listWebhooks', { query: { page, limit: PART_LENGTH } }, { signal })
    return { rows: webhooks, total }
  }
  const done = (webhook: WebhookWithSecret) => {
    setMade(webhook)
    setMaking(false)
    setTurn(turn + 1)
  }
  return (
    <Page
      title="Webhooks"
      help="webhooks"
      about="URLs that receive events (Standard Webhooks): signed, delivered at least once, retried for a day."
      actions={
        !isMaking && (
          <button type="button" class="main" onClick={() => setMaking(true)}>
            New webhook
          </button>
        )
      }
    >
      {made !== null && <Secret label={`Signing secret of ${made.url}.`} value={made.secret} />}
      {isMaking && <NewWebhook done={done} cancel={() => setMaking(false)} />}
      <LongTable
        label="Webhooks"
        columns={COLUMNS}
        listKey={String(turn)}
        keyOf={({ id }) => id}
        load={load}
        hrefOf={({ id }) => `/dashboard/webhooks/${id}`}
        empty={
          <Empty title="No webhooks yet">
            <p>Create a webhook to receive events as they happen.</p>
          </Empty>
        }
      />
    </Page>
  )
}

function NewWebhook({
  done,
  cancel,
}: {
  readonly done: (webhook: WebhookWithSecret) => void
  readonly cancel: () => void
}) {
  const doing = useDoing()
  return (
    <section class="card" aria-labelledby="new">
      <h2 id="new">New webhook</h2>
      <Form
        label="New webhook"
        submit="Create"
        doing={doing}
        cancel={cancel}
        done={async (data) => done(await ask('createWebhook', { body: webhookIn(data) }))}
      >
        <WebhookFields webhook={null} doing={doing} />
      </Form>
    </section>
  )
}

const COLUMNS: readonly LongColumn<Webhook>[] = [
  { title: 'URL', width: 'minmax(8rem, 3fr)', cell: ({ url }) => url },
  {
    title: 'State',
    width: '7rem',
    cell: (webhook) => {
      const { state, text } = healthOf(webhook)
      return <Badge of={state} text={text} />
    },
  },
  { title: 'Events', width: 'minmax(8rem, 2fr)', isExtra: true, cell: ({ events }) => events.join(', ') },
  { title: 'Pending', width: '5rem', isExtra: true, isNumber: true, cell: ({ pending }) => pending },
  {
    title: 'Last delivery',
    width: '9rem',
    isExtra: true,
    cell: ({ last_delivery_at }) => <Time at={last_delivery_at} />,
  },
]
