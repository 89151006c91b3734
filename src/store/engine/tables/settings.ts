export interface SettingTables {
  settings: SettingTable
}

/** What may change while it runs; what is fixed at the start is in the configuration. */
export interface SettingTable {
  name: string
  /** JSON. */
  value: string
  /** Counts from 1 with every change. */
  version: number
  changed_at_ms: number
}
