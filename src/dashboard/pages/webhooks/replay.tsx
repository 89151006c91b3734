import { useState } from 'preact/hooks'
import { ask } from '../../api/ask.ts'
import type { EventType, Webhook, WebhookReplayed } from '../../api/operations.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Choices } from '../../parts/choices.tsx'
import { Field } from '../../parts/field.tsx'
import { Form, textOf } from '../../parts/form.tsx'
import { counted } from '../../parts/format.ts'
import { EVENTS } from './webhook-fields.tsx'

/** Sends events again to a receiver that was down or lost some. */
export function Replay({ webhook, done }: { readonly webhook: Webhook; readonly done: () => void }) {
  const doing = useDoing()
  const [replayed, setReplayed] = useState<WebhookReplayed | null>(null)
  return (
    <details class="card">
      <summary>Replay events</summary>
      {replayed !== null && (
        <p class="note good" role="status">
          {counted(replayed.queued, 'event')} queued.
          {replayed.next_since !== null && ` There are more events: continue from ${replayed.next_since}.`}
        </p>
      )}
      <Form
        label="Replay events"
        submit="Replay"
        doing={doing}
        done={async (data) => {
          const types = data.getAll('types') as EventType[]
          const body = {
            since: timeIn(data, 'since') ?? '',
            ...(timeIn(data, 'until') !== undefined && { until: timeIn(data, 'until')! }),
            ...(types.length > 0 && { types }),
          }
          setReplayed(await ask('replayWebhook', { path: { id: webhook.id }, body }))
          done()
        }}
      >
        <Field label="From" hint="In your local time." error={doing.errorAt('/since')}>
          {(tied) => <input {...tied} name="since" type="datetime-local" required />}
        </Field>
        <Field label="Until" hint="Leave empty to replay up to now." error={doing.errorAt('/until')}>
          {(tied) => <input {...tied} name="until" type="datetime-local" />}
        </Field>
        <Choices
          legend="Only these events"
          name="types"
          values={EVENTS}
          hint="None selected: all events of this webhook."
        />
      </Form>
    </details>
  )
}

function timeIn(data: FormData, name: string): string | undefined {
  const text = textOf(data, name)
  return text === undefined ? undefined : new Date(text).toISOString()
}
