import { duration, optional } from './kinds.ts'
import { section, setting, type ValueOf } from './items.ts'

/** All of them in one place. Those that are not set are as the settings of the same thing say elsewhere. */
export const RETENTION = section(
  'How long each kind of record is kept, in one place; config/guide/privacy.md. A value here takes the place of the setting that is named with it. The managers delete what is older.',
  {
    requests: setting(
      optional(duration('1m', '365d')),
      null,
      'Individual requests, with the address of the client. `null`: `sightings.retention`.',
    ),
    events: setting(
      optional(duration('1h', '3650d')),
      null,
      'Events, cases after their last event, and campaigns after their last request. `null`: `events.retention`.',
    ),
    deliveries: setting(
      optional(duration('1h', '365d')),
      null,
      'Finished deliveries of webhooks. `null`: `webhooks.retention`.',
    ),
    audit: setting(
      optional(duration('1d', '3650d')),
      null,
      'Entries of the audit log. `null`: `store.audit_retention`.',
    ),
    payments: setting(
      optional(duration('1d', '3650d')),
      null,
      'Payments in the ledger. `null`: `payments.retention`.',
    ),
    minutes: setting(optional(duration('25h', '31d')), null, 'Counts per minute. `null`: `rollups.minutes`.'),
    hours: setting(optional(duration('31d', '1000d')), null, 'Counts per hour. `null`: `rollups.hours`.'),
    days: setting(optional(duration('31d', '3650d')), null, 'Counts per day. `null`: `rollups.days`.'),
    tasks: setting(duration('1h', '365d'), '7d', 'Tasks after their end, with their results.'),
    feedback: setting(
      optional(duration('1d', '3650d')),
      null,
      'Feedback on decisions. `null`: the newest 100,000 are kept.',
    ),
    parquet: setting(
      optional(duration('1d', '3650d')),
      null,
      'Days of Parquet files in the folder or bucket of `sinks.parquet`. `null`: Gatehouse deletes none.',
    ),
  },
)

export interface RetentionConfig {
  readonly requestsMs: number
  readonly eventsMs: number
  readonly deliveriesMs: number
  readonly auditMs: number
  readonly paymentsMs: number
  readonly rollups: { readonly minutesMs: number; readonly hoursMs: number; readonly daysMs: number }
  /** Of records that have no settings elsewhere. */
  readonly others: {
    readonly tasksMs: number
    /** `null`: whatever their age. */
    readonly feedbackMs: number | null
    /** `null`: they are not deleted. */
    readonly parquetMs: number | null
  }
}

/** The settings that say the same elsewhere. */
interface SaidElsewhere {
  readonly sightings: { readonly retention: number }
  readonly events: { readonly retention: number }
  readonly webhooks: { readonly retention: number }
  readonly store: { readonly audit_retention: number }
  readonly payments: { readonly retention: number }
  readonly rollups: { readonly minutes: number; readonly hours: number; readonly days: number }
}

export function retentionConfig(
  retention: ValueOf<typeof RETENTION>,
  { sightings, events, webhooks, store, payments, rollups }: SaidElsewhere,
): RetentionConfig {
  return {
    requestsMs: retention.requests ?? sightings.retention,
    eventsMs: retention.events ?? events.retention,
    deliveriesMs: retention.deliveries ?? webhooks.retention,
    auditMs: retention.audit ?? store.audit_retention,
    paymentsMs: retention.payments ?? payments.retention,
    rollups: {
      minutesMs: retention.minutes ?? rollups.minutes,
      hoursMs: retention.hours ?? rollups.hours,
      daysMs: retention.days ?? rollups.days,
    },
    others: {
      tasksMs: retention.tasks,
      feedbackMs: retention.feedback,
      parquetMs: retention.parquet,
    },
  }
}
