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
      advice: `It was disabled: ${disabled_reason}. Put its receiver right, and enable it.`,
    }
  if (!enabled)
    return { state: 'plain', text: 'off', advice: 'What waits for it goes on once it is enabled.' }
  if (paused_until !== null)
    return {
      state: 'warn',
      text: 'paused',
      advice: 'Its receiver is down: it is tried again later, and nothing is lost until then.',
    }
  if (failing_since !== null)
    return {
      state: 'warn',
      text: 'failing',
      advice: 'The last attempts failed; look at the answers in its deliveries.',
    }
  return { state: 'good', text: 'well', advice: null }
}
