export interface AppTables {
  apps: AppTable
  app_hosts: AppHostTable
}

/** The apps that were made through the API. Bounded: the API limits their number. */
export interface AppTable {
  id: string
  name: string
  team: string | null
  upstream: string | null
  /** JSON: a list. */
  labels: string
  /** JSON: a mapping. */
  quota: string | null
  created_at_ms: number
  updated_at_ms: number
}

/** A host pattern belongs to one app. */
export interface AppHostTable {
  /** The form of `hostPatternKey`. */
  key: string
  /** As written. */
  pattern: string
  app_id: string
  /** Its place in the list of the app. */
  place: number
}
