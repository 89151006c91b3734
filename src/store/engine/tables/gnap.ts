export interface GnapTables {
  gnap_grants: GnapGrantTable
  gnap_tokens: GnapTokenTable
}

/** What a key that nobody knows has asked for (RFC 9635). Of each of its secrets there is a hash. */
export interface GnapGrantTable {
  id: string
  /** `waiting`, `approved`, `denied`, `finished`. */
  state: string
  thumbprint: string
  /** JSON. */
  jwk: string
  /** JSON: what the client says about itself. */
  display: string
  /** JSON: the tokens. */
  wanted: string
  /** JSON: where the browser goes when it is decided; `null`: the client asks again. */
  finish: string | null
  /** JSON: a list; those that were approved, before that those that are asked for. */
  scopes: string
  interact_hash: string
  /** `null`: the browser was not sent back yet. */
  reference_hash: string | null
  continue_hash: string
  /** Not before then may the client ask again. */
  next_at_ms: number
  /** The id of a principal; `null`: nobody yet, or an earlier version did not write it down. */
  decided_by: string | null
  /** When they had signed in, if they sign in. */
  decided_at_ms: number | null
  created_at_ms: number
  expires_at_ms: number
}

export interface GnapTokenTable {
  id: string
  /** SHA-256 of the token, in hexadecimal; the token itself is nowhere. */
  hash: string
  /** Of the token it is managed with. */
  manage_hash: string
  thumbprint: string
  /** JSON. */
  jwk: string
  name: string
  label: string | null
  /** JSON: a list. */
  scopes: string
  is_bearer: number
  /** Somebody has approved it; else it is good for as long as its key is trusted. */
  is_approved: number
  /** The id of a principal; `null`: nobody, or an earlier version did not write it down. */
  approved_by: string | null
  /** When they had signed in, if they sign in. */
  approved_at_ms: number | null
  expires_at_ms: number
  /** It can be renewed until then. */
  ends_at_ms: number
  revoked_at_ms: number | null
}
