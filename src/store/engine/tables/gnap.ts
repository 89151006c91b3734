export interface GnapTables {
  gnap_grants: GnapGrantTable
  gnap_tokens: GnapTokenTable
}

/** A grant request of an unknown key (RFC 9635). Only hashes of its secrets are stored. */
export interface GnapGrantTable {
  id: string
  /** `waiting`, `approved`, `denied`, `finished`. */
  state: string
  thumbprint: string
  /** JSON. */
  jwk: string
  /** JSON: what the client claims about itself. */
  display: string
  /** JSON: the tokens. */
  wanted: string
  /** JSON: where the browser goes after the decision; `null`: the client polls. */
  finish: string | null
  /** JSON: a list. The requested scopes, then the approved ones. */
  scopes: string
  interact_hash: string
  /** `null`: the browser was not sent back yet. */
  reference_hash: string | null
  continue_hash: string
  /** The client must not continue before then. */
  next_at_ms: number
  /** The id of a principal; `null`: undecided, or an earlier version did not store it. */
  decided_by: string | null
  /** When the decider signed in, for principals that sign in. */
  decided_at_ms: number | null
  created_at_ms: number
  expires_at_ms: number
}

export interface GnapTokenTable {
  id: string
  /** SHA-256 of the token, in hexadecimal. The token itself is not stored. */
  hash: string
  /** The hash of the management token. */
  manage_hash: string
  thumbprint: string
  /** JSON. */
  jwk: string
  name: string
  label: string | null
  /** JSON: a list. */
  scopes: string
  is_bearer: number
  /** 1: a principal approved it. 0: it is valid as long as its key is trusted. */
  is_approved: number
  /** The id of a principal; `null`: not approved, or an earlier version did not store it. */
  approved_by: string | null
  /** When the approver signed in, for principals that sign in. */
  approved_at_ms: number | null
  expires_at_ms: number
  /** It can be renewed until then. */
  ends_at_ms: number
  revoked_at_ms: number | null
}
