export interface DeliveryTables {
  deliveries: DeliveryTable
}

/** An event that one webhook is told of. */
export interface DeliveryTable {
  id: string
  webhook_id: string
  event_number: number
  /** The subject of its event, in whose line it stands; `null`: it stands in none any more. */
  lane: string | null
  created_at_ms: number
  /** When it is to be sent, or while it is held until when; `null`: it waits for its turn in the line, or is finished. */
  next_at_ms: number | null
  /** What is sending it; nobody else does before `next_at_ms`. */
  holder: string | null
  attempts: number
  /** JSON: a list of the last attempts. */
  log: string
  /** `null`: it is pending. */
  outcome: DeliveryOutcome | null
  finished_at_ms: number | null
}

/** `failed`: it was given up. */
export type DeliveryOutcome = 'delivered' | 'failed'
