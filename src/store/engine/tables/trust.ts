import type { Generated } from 'kysely'

export interface TrustTables {
  trust: TrustTable
}

/** The permissions of agents and keys that authenticate with a key of their own. */
export interface TrustTable {
  id: string
  /** `agent`, `key`. */
  kind: string
  /** The agent's id (a URL), or the key's RFC 7638 thumbprint. */
  subject: string
  name: string | null
  /** JSON: a list. */
  scopes: string
  /** JSON: a list of ids, or `"*"`. */
  apps: Generated<string>
  plan: string
  /** JSON: the agent's document if it is stored here, or the key. */
  document: string | null
  created_at_ms: number
}
