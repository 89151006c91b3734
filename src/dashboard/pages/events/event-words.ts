import type { Event } from '../../api/operations.ts'

/** Titles of event types. */
export const TITLES: Readonly<Record<Event['type'], string>> = {
  new_agent: 'New agent',
  new_signature: 'New signature',
  threat_detected: 'Threat',
  payment: 'Payment',
}

/** A short description of the event's subject. */
export function subjectOf({ data }: Pick<Event, 'data'>): string {
  const why = textAt(data, 'reason')?.replaceAll('_', ' ')
  const who = WHO.map((path) => textAt(data, ...path)).find((text) => text !== null)
  const outcome = textAt(data, 'outcome')
  const price = ['price', 'currency'].map((name) => textAt(data, 'payment', name)).join(' ')
  return [outcome, why, who, price.trim()].filter((text) => text).join(', ') || 'see details'
}

/** A text in the data of an event. `null`: missing or empty. */
export function textAt(data: unknown, ...path: readonly string[]): string | null {
  let value = data
  for (const name of path)
    value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : null
  return typeof value === 'string' && value !== '' ? value : null
}

const WHO: readonly (readonly string[])[] = [
  ['agent', 'name'],
  ['signature', 'agent_name'],
  ['signature', 'fingerprint'],
  ['detection', 'agent_name'],
  ['campaign_id'],
  ['request', 'user_agent'],
  ['request', 'address'],
  ['payment', 'payer'],
]
