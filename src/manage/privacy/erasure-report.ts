/** What an erasure has done so far, by table. */
export class ErasureReport {
  readonly isDry: boolean
  readonly #rows = new Map<string, number>()

  constructor(isDry: boolean) {
    this.isDry = isDry
  }

  add(table: ErasedTable, rows: number): void {
    this.#rows.set(table, (this.#rows.get(table) ?? 0) + rows)
  }

  /** A table that was searched is in it, whether something was found there or not. */
  get tables(): readonly ErasedFrom[] {
    return Array.from(this.#rows, ([table, rows]) => ({
      table,
      rows,
      done: DONE[table as ErasedTable],
    }))
  }
}

export interface ErasedFrom {
  /** As in the data map. `requests`: in ClickHouse. */
  readonly table: string
  readonly rows: number
  readonly done: 'deleted' | 'blanked'
}

const DONE = {
  sightings: 'deleted',
  sighting_profiles: 'deleted',
  fingerprints_seen: 'deleted',
  feedback_fingerprints: 'deleted',
  traffic_outbox: 'blanked',
  requests: 'deleted',
  campaigns: 'blanked',
  cases: 'blanked',
  threat_windows: 'deleted',
  event_storms: 'blanked',
  events: 'blanked',
  deliveries: 'blanked',
  audit: 'blanked',
  users: 'deleted',
  user_recovery_codes: 'deleted',
  passkeys: 'deleted',
  oauth_records: 'deleted',
  gnap_grants: 'deleted',
  gnap_tokens: 'deleted',
  tasks: 'deleted',
  task_chunks: 'deleted',
  idempotency: 'deleted',
} as const
export type ErasedTable = keyof typeof DONE
