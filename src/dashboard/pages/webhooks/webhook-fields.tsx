import type { EventType, Webhook, WebhookFilters } from '../../api/operations.ts'
import type { Doing } from '../../api/use-doing.ts'
import { Choices } from '../../parts/choices.tsx'
import { PURPOSES } from '../live/names.ts'
import { Field } from '../../parts/field.tsx'
import { textOf } from '../../parts/form.tsx'

/** Form fields for a new or changed webhook. */
export function WebhookFields({
  webhook,
  doing,
}: {
  readonly webhook: Webhook | null
  readonly doing: Doing
}) {
  const filters = webhook?.filters ?? {}
  return (
    <>
      <Field
        label="URL"
        hint="An https:// URL on the public internet, unless webhooks.allow_private_addresses is set."
        error={doing.errorAt('/url')}
      >
        {(tied) => <input {...tied} name="url" type="url" required defaultValue={webhook?.url ?? ''} />}
      </Field>
      <Field label="Description" error={doing.errorAt('/description')}>
        {(tied) => (
          <input {...tied} name="description" maxLength={500} defaultValue={webhook?.description ?? ''} />
        )}
      </Field>
      <Choices
        legend="Events"
        name="events"
        values={EVENTS}
        chosen={webhook?.events ?? EVENTS.map(({ value }) => value)}
        error={doing.errorAt('/events')}
      />
      <Choices
        legend="Only these categories"
        name="categories"
        values={CATEGORIES}
        chosen={filters.categories ?? []}
        hint="None selected: all categories."
        error={doing.errorAt('/filters/categories')}
      />
      <Choices
        legend="Only these purposes"
        name="purposes"
        values={PURPOSES.map(({ purpose }) => ({ value: purpose }))}
        chosen={filters.purposes ?? []}
        hint="None selected: all purposes, and agents without a published purpose."
        error={doing.errorAt('/filters/purposes')}
      />
      <Field
        label="Only of these agents"
        hint="Agent IDs, separated by commas."
        error={doing.errorAt('/filters/agents')}
      >
        {(tied) => <input {...tied} name="agents" defaultValue={filters.agents?.join(', ') ?? ''} />}
      </Field>
      <Field
        label="Only of these apps"
        hint="App IDs, separated by commas. Events that are not about one app do not pass."
        error={doing.errorAt('/filters/apps')}
      >
        {(tied) => <input {...tied} name="apps" defaultValue={filters.apps?.join(', ') ?? ''} />}
      </Field>
      <Field label="Minimum severity of threats" error={doing.errorAt('/filters/min_severity')}>
        {(tied) => (
          <select {...tied} name="min_severity">
            <option value="">all</option>
            {SEVERITIES.map((each) => (
              <option key={each} value={each} selected={each === filters.min_severity}>
                {each}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field
        label="Minimum confidence"
        hint="From 0 to 1. Events without a confidence pass."
        error={doing.errorAt('/filters/min_confidence')}
      >
        {(tied) => (
          <input
            {...tied}
            name="min_confidence"
            type="number"
            min={0}
            max={1}
            step="any"
            defaultValue={filters.min_confidence ?? ''}
          />
        )}
      </Field>
    </>
  )
}

/** The field values in the API's form. */
export function webhookIn(data: FormData) {
  return {
    url: textOf(data, 'url') ?? '',
    description: textOf(data, 'description') ?? null,
    events: data.getAll('events') as EventType[],
    filters: filtersIn(data),
  }
}

function filtersIn(data: FormData): WebhookFilters | null {
  const categories = data.getAll('categories') as NonNullable<WebhookFilters['categories']>
  const purposes = data.getAll('purposes') as NonNullable<WebhookFilters['purposes']>
  const [agents, apps] = [listOf(data, 'agents'), listOf(data, 'apps')]
  const severity = SEVERITIES.find((each) => each === data.get('min_severity'))
  const confidence = textOf(data, 'min_confidence')
  const filters = {
    ...(categories.length > 0 && { categories }),
    ...(purposes.length > 0 && { purposes }),
    ...(agents.length > 0 && { agents }),
    ...(apps.length > 0 && { apps }),
    ...(severity !== undefined && { min_severity: severity }),
    ...(confidence !== undefined && { min_confidence: Number(confidence) }),
  }
  return Object.keys(filters).length === 0 ? null : filters
}

function listOf(data: FormData, name: string): string[] {
  const words = (textOf(data, name) ?? '').split(',').map((each) => each.trim())
  return words.filter((each) => each !== '')
}

export const EVENTS = [
  { value: 'new_agent', about: 'seen for the first time' },
  { value: 'new_signature', about: 'added to the database' },
  { value: 'threat_detected', about: 'a threat in traffic' },
  { value: 'payment', about: 'settled, refused or refunded' },
] as const
const CATEGORIES = ['llm-sdk', 'browser-agent', 'orchestrator', 'crawler', 'mcp-client', 'custom'].map(
  (value) => ({ value }),
)
const SEVERITIES = ['low', 'medium', 'high', 'critical'] as const
