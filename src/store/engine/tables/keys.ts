import type { Generated } from 'kysely'

export interface KeyTables {
  api_keys: KeyTable
}

export interface KeyTable {
  id: string
  /** SHA-256 of the key, in hexadecimal. The key itself is not stored. */
  hash: string
  name: string
  /** JSON: a list. */
  scopes: string
  /** JSON: a list of ids, or `"*"`. */
  apps: Generated<string>
  plan: string
  created_at_ms: number
  expires_at_ms: number | null
  revoked_at_ms: number | null
  last_used_at_ms: number | null
}
