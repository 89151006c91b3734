export interface PolicyTables {
  policies: PolicyTable
}

/** A policy that was set through the API. Bounded: only the newest of each app are kept, and the API limits all of them. */
export interface PolicyTable {
  /** The id of an app; `*`: the organisation. */
  app: string
  /** Counts from 1, for each app. */
  version: number
  /** JSON, as its author wrote it. */
  document: string
  /** SHA-256 of the document, in hexadecimal. */
  hash: string
  /** The id of a principal. */
  author: string
  /** The version whose document this version restores. */
  restored_version: number | null
  created_at_ms: number
  /** Why it was changed, in the words of its author. */
  comment: string | null
}
