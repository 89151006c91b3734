export interface DeliveryTables {
  deliveries: DeliveryTable
}

/** One event for one webhook. */
interface DeliveryTable {
  id: string
  webhook_id: string
  event_number: number
  /** The subject of its event, which selects its queue; `null`: it has left its queue, or never had one. */
  lane: string | null
  created_at_ms: number
  /** When it is due, or until when it is claimed; `null`: it waits in its queue, or is finished. */
  next_at_ms: number | null
  /** The process that sends it. No other process may before `next_at_ms`. */
  holder: string | null
  attempts: number
  /** JSON: a list of the last attempts. */
  log: string
  /** `null`: pending. */
  outcome: DeliveryOutcome | null
  finished_at_ms: number | null
}

/** `failed`: no more attempts. */
export type DeliveryOutcome = 'delivered' | 'failed'
