export interface PolicyTables {
  policies: PolicyTable
}

/** A policy that was put by way of the API; bounded: the newest ones. */
export interface PolicyTable {
  /** Counts from 1. */
  version: number
  /** JSON, as its author wrote it. */
  document: string
  /** SHA-256 of the document, in hexadecimal. */
  hash: string
  /** The id of a principal. */
  author: string
  /** The version whose document this one has again. */
  restored_version: number | null
  created_at_ms: number
}
