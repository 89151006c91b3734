import { useState } from 'preact/hooks'
import { useLocation, useRoute } from 'preact-iso'
import { ask } from '../../api/ask.ts'
import type { Webhook as WebhookAnswer } from '../../api/operations.ts'
import { useAsked } from '../../api/use-asked.ts'
import { useDoing } from '../../api/use-doing.ts'
import { Badge } from '../../parts/badge.tsx'
import { Confirm } from '../../parts/confirm.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Form } from '../../parts/form.tsx'
import { Page } from '../../parts/page.tsx'
import { Secret } from '../../parts/secret.tsx'
import { Answered, ProblemNote } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { Deliveries } from './deliveries.tsx'
import { Replay } from './replay.tsx'
import { WebhookFields, webhookIn } from './webhook-fields.tsx'
import { healthOf } from './webhook-health.ts'

export function WebhookPage() {
  const { params } = useRoute()
  const id = params['id']!
  const used = useAsked('getWebhook', { path: { id } }, { everyMs: 5_000 })
  return (
    <Page title="Webhook" help="webhooks" about={<a href="/dashboard/webhooks">All webhooks</a>}>
      <Answered used={used}>
        {(webhook) => <OneWebhook webhook={webhook} tag={used.tag} again={used.again} />}
      </Answered>
    </Page>
  )
}

interface Props {
  readonly webhook: WebhookAnswer
  readonly tag: string | null
  again(): void
}

function OneWebhook({ webhook, tag, again }: Props) {
  const [isChanging, setChanging] = useState(false)
  const [turn, setTurn] = useState(0)
  const more = () => {
    setTurn((before) => before + 1)
    again()
  }
  return (
    <>
      <section class="card" aria-labelledby="which">
        <h2 id="which">{webhook.url}</h2>
        {isChanging ? (
          <Change
            {...{ webhook, tag }}
            done={() => {
              setChanging(false)
              again()
            }}
            cancel={() => setChanging(false)}
          />
        ) : (
          <>
            <State webhook={webhook} />
            <Actions webhook={webhook} again={more} change={() => setChanging(true)} />
          </>
        )}
      </section>
      <Replay webhook={webhook} done={more} />
      <Deliveries webhookId={webhook.id} turn={turn} />
    </>
  )
}

function State({ webhook }: Pick<Props, 'webhook'>) {
  const { state, text, advice } = healthOf(webhook)
  const { filters } = webhook
  return (
    <>
      {advice !== null && <p class={`note ${state === 'plain' ? '' : state}`}>{advice}</p>}
      <Facts
        of={[
          ['State', <Badge key="state" of={state} text={text} />],
          ['Description', webhook.description],
          ['Events', webhook.events.join(', ')],
          [
            'Filters',
            filters === null
              ? null
              : Object.entries(filters)
                  .map(([name, value]) => `${name}: ${value}`)
                  .join('; '),
          ],
          ['Pending', String(webhook.pending)],
          ['Last delivery', <Time key="last" at={webhook.last_delivery_at} />],
          [
            'Failing',
            webhook.failing_since === null ? null : (
              <>
                since <Time at={webhook.failing_since} />
              </>
            ),
          ],
          [
            'Paused',
            webhook.paused_until === null ? null : (
              <>
                until <Time at={webhook.paused_until} />
              </>
            ),
          ],
          [
            'Old secret',
            webhook.old_secret_expires_at === null ? null : (
              <>
                valid until <Time at={webhook.old_secret_expires_at} />
              </>
            ),
          ],
          ['Created', <Time key="made" at={webhook.created_at} />],
        ]}
      />
    </>
  )
}

function Actions({
  webhook: { id, url, enabled },
  again,
  change,
}: {
  readonly webhook: WebhookAnswer
  readonly again: () => void
  readonly change: () => void
}) {
  const { route } = useLocation()
  const doing = useDoing()
  const [asks, setAsks] = useState<'delete' | 'rotate' | null>(null)
  const [secret, setSecret] = useState<string | null>(null)
  const [said, setSaid] = useState<string | null>(null)
  const path = { id }
  const done = (text: string) => {
    setSaid(text)
    again()
  }
  return (
    <>
      {doing.problem !== null && <ProblemNote problem={doing.problem} />}
      {secret !== null && (
        <Secret label="New signing secret (the old one stays valid for a day)." value={secret} />
      )}
      <p role="status">{said}</p>
      <p class="actions">
        <button type="button" onClick={change}>
          Change
        </button>
        <button
          type="button"
          onClick={() =>
            void doing.run(async () => {
              await ask('updateWebhook', { path, body: { enabled: !enabled } })
              done(enabled ? 'Turned off. Events wait until you enable it.' : 'Enabled.')
            })
          }
        >
          {enabled ? 'Turn off' : 'Enable'}
        </button>
        <button
          type="button"
          onClick={() =>
            void doing.run(async () => {
              await ask('testWebhook', { path })
              done('Test queued. See the deliveries below.')
            })
          }
        >
          Send test
        </button>
        <button type="button" onClick={() => setAsks('rotate')}>
          Rotate secret
        </button>
        <button type="button" class="bad" onClick={() => setAsks('delete')}>
          Delete
        </button>
      </p>
      {asks === 'rotate' && (
        <Confirm
          title="Rotate the secret?"
          doing="Rotate"
          cancel={() => setAsks(null)}
          done={() => {
            setAsks(null)
            void doing.run(async () => {
              setSecret((await ask('rotateWebhookSecret', { path })).secret)
              again()
            })
          }}
        >
          <p>For one day deliveries are signed with both secrets, so that the receiver can switch.</p>
        </Confirm>
      )}
      {asks === 'delete' && (
        <Confirm
          title="Delete this webhook?"
          doing="Delete"
          isBad
          cancel={() => setAsks(null)}
          done={() => {
            setAsks(null)
            void doing.run(async () => {
              await ask('deleteWebhook', { path })
              route('/dashboard/webhooks')
            })
          }}
        >
          <p>{url} receives no more events, and its deliveries are deleted. This cannot be undone.</p>
        </Confirm>
      )}
    </>
  )
}

function Change({
  webhook,
  tag,
  done,
  cancel,
}: Omit<Props, 'again'> & { readonly done: () => void; readonly cancel: () => void }) {
  const doing = useDoing()
  return (
    <Form
      label="Change webhook"
      submit="Save"
      doing={doing}
      cancel={cancel}
      done={async (data) => {
        const options = tag === null ? {} : { ifMatch: tag }
        await ask('updateWebhook', { path: { id: webhook.id }, body: webhookIn(data) }, options)
        done()
      }}
    >
      <WebhookFields webhook={webhook} doing={doing} />
    </Form>
  )
}
