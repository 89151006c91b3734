export interface AuditTables {
  audit: AuditTable
}

export interface AuditTable {
  id: string
  at_ms: number
  principal: string
  action: string
  subject: string | null
  /** JSON. */
  detail: string
  address: string | null
  request_id: string | null
  /** JSON of an `AppList`. */
  apps: string
}
