export interface ReplayTables {
  replays: ReplayTable
}

/** A proof that was used and must not be used again. */
interface ReplayTable {
  /** A digest. */
  id: string
  expires_at_ms: number
}
