import type { DeliveryTables } from '../engine/tables/deliveries.ts'
import type { CaseTables } from '../engine/tables/cases.ts'
import type { EventTables } from '../engine/tables/events.ts'
import type { WebhookTables } from '../engine/tables/webhooks.ts'
import { ACCOUNT_ID, impersonal, personal, type TableData } from './table-data.ts'

export const EVENTS_DATA: Readonly<
  Record<keyof (CaseTables & EventTables & DeliveryTables & WebhookTables), TableData>
> = {
  events: personal(
    { data: 'address, path, User-Agent and JA4H of the request that caused it, and addresses of examples' },
    {
      why: 'for webhooks, event streams and sinks',
      kept: '`retention.events`, `events.rows_max`',
      erased: 'the event stays; address, path, User-Agent and JA4H are blanked, also in deliveries that wait',
    },
    'number id type at_ms subject agent category severity confidence app case_id',
  ),
  cases: personal(
    {
      address: 'the network of a client without a TLS fingerprint, or the hash of its address',
      changed_by: ACCOUNT_ID,
    },
    {
      why: 'threats that belong together, and what people decided about them',
      kept: '`retention.events` after the last event, and the newest 10,000',
      erased: 'the address is blanked; the id of an account stays: without the account, it tells nothing',
    },
    'id identity app reason severity campaign agent ja4 first_at_ms last_at_ms events requests status version changed_at_ms note feedback',
  ),
  event_positions: impersonal('name number holder held_until_ms'),
  deliveries: personal(
    { log: 'what a receiver answered, which may repeat the event' },
    {
      why: 'to see why a delivery failed',
      kept: '`retention.deliveries`',
      erased: 'the answers to blanked events are blanked',
    },
    'id webhook_id event_number lane created_at_ms next_at_ms holder attempts outcome finished_at_ms',
  ),
  webhooks: impersonal(
    'id url events description enabled created_at_ms updated_at_ms filters apps failures pauses failing_since_ms paused_until_ms last_delivery_at_ms disabled_reason disabled_at_ms',
  ),
  webhook_secrets: impersonal('id webhook_id sealed created_at_ms expires_at_ms'),
}
