export interface SettingTables {
  settings: SettingTable
}

/** Settings that can change at run time. Fixed settings are in the configuration. */
export interface SettingTable {
  name: string
  /** JSON. */
  value: string
  /** Counts from 1 with every change. */
  version: number
  changed_at_ms: number
}
