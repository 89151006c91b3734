import type { Webhook } from '../../api/operations.ts'

/** The health of a webhook in a word, and advice. */
export function healthOf({
  enabled,
  disabled_reason,
  paused_until,
  failing_since,
}: Pick<Webhook, 'enabled' | 'disabled_reason' | 'paused_until' | 'failing_since'>): {
  readonly state: 'good' | 'warn' | 'bad' | 'plain'
  readonly text: string
  readonly advice: string | null
} {
  if (!enabled && disabled_reason !== null)
    return {
      state: 'bad',
      text: 'disabled',
      advice: `Disabled automatically: ${disabled_reason}. Fix the receiver, then enable the webhook.`,
    }
  if (!enabled)
    return { state: 'plain', text: 'off', advice: 'Pending events are delivered once you enable it.' }
  if (paused_until !== null)
    return {
      state: 'warn',
      text: 'paused',
      advice: 'The receiver is down. Delivery is retried later; no events are lost.',
    }
  if (failing_since !== null)
    return {
      state: 'warn',
      text: 'failing',
      advice: 'The last attempts failed. See the responses in its deliveries.',
    }
  return { state: 'good', text: 'healthy', advice: null }
}
