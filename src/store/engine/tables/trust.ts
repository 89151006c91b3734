export interface TrustTables {
  trust: TrustTable
}

/** What those may do who prove who they are with a key of their own. */
export interface TrustTable {
  id: string
  /** `agent`, `key`. */
  kind: string
  /** The agent's id, a URL; the key's RFC 7638 thumbprint. */
  subject: string
  name: string | null
  /** JSON: a list. */
  scopes: string
  plan: string
  /** JSON: the agent's document, where it is kept here; the key. */
  document: string | null
  created_at_ms: number
}
