import type { Queries } from '../../../store/engine/database.ts'
import type { WebhookRecord } from '../../../store/events/webhooks.ts'
import { type Actor, addAudit } from '../../http/audit.ts'
import type { EventsContext } from '../context.ts'
import { type Ended, healthAfter } from './afterwards.ts'

/** Stores the results of attempts, the health of their webhooks, and which webhooks are disabled for it. */
export async function settle(
  ended: readonly Ended[],
  retryBaseMs: number,
  management: Pick<EventsContext, 'store' | 'log' | 'nowMs'>,
): Promise<void> {
  const { store, nowMs, log } = management
  const atMs = nowMs()
  const disabled = await store.transaction(async (queries) => {
    const disabled: { readonly webhook: string; readonly reason: string }[] = []
    const ids = [...new Set(ended.map(({ told }) => told.delivery.webhookId))]
    for (const webhook of await store.webhookHealth.lock(ids.toSorted(), queries)) {
      const own = ended.filter(({ told }) => told.delivery.webhookId === webhook.id)
      const reason = await settleOne(webhook, own, { retryBaseMs, atMs }, management, queries)
      if (reason !== null) disabled.push({ webhook: webhook.id, reason })
    }
    await store.deliveries.finish(
      ended.map(({ told }) => told),
      atMs,
      queries,
    )
    return disabled
  })
  for (const said of disabled) log.warn('a webhook is disabled', said)
  for (const { told } of ended)
    if (told.outcome === 'failed') {
      const { webhookId: webhook, id: delivery } = told.delivery
      log.warn('a delivery to a webhook is given up', { webhook, delivery, reason: told.log.at(-1)!.error })
    }
}

/** The reason why the webhook is disabled now; `null`: it stays enabled, or was disabled before. */
async function settleOne(
  webhook: WebhookRecord,
  ended: readonly Ended[],
  { retryBaseMs, atMs }: { readonly retryBaseMs: number; readonly atMs: number },
  { store }: Pick<EventsContext, 'store'>,
  queries: Queries,
): Promise<string | null> {
  const isProbe = ended.some((each) => each.isProbe)
  const attempts = ended.map(({ posted }) => posted)
  const { health, disabled } = healthAfter(webhook.health, attempts, { isProbe, retryBaseMs, nowMs: atMs })
  if (disabled === null || !webhook.isEnabled) {
    await store.webhookHealth.put(webhook.id, health, queries)
    return null
  }
  const why = { disabledReason: disabled, disabledAtMs: atMs }
  await store.webhookHealth.put(webhook.id, { ...health, ...why }, queries)
  await store.webhooks.update(webhook.id, { isEnabled: false }, atMs, queries)
  const detail = { host: new URL(webhook.url).host, reason: disabled }
  const { id: subject, apps } = webhook
  await addAudit(store, ITSELF, { action: 'disableWebhook', subject, apps, detail }, atMs, queries)
  return disabled
}

const ITSELF: Actor = { id: 'gatehouse', address: null, requestId: null }
