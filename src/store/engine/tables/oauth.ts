export interface OAuthTables {
  oauth_clients: OAuthClientTable
  oauth_denials: OAuthDenialTable
  oauth_keys: OAuthKeyTable
  oauth_records: OAuthRecordTable
}

/** Who asks for tokens. */
export interface OAuthClientTable {
  id: string
  name: string
  /** SHA-256 of the secret, in hexadecimal; `null`: it has none. */
  secret_hash: string | null
  auth_method: string
  /** JSON: a list, as the two after it. */
  grant_types: string
  redirect_uris: string
  scopes: string
  /** JSON: a JWK Set. */
  jwks: string | null
  plan: string
  /** `registration`: by itself (RFC 7591). */
  origin: string
  created_at_ms: number
}

/** What the authorization server remembers of codes, refresh tokens, sessions: by digests of their names, and sealed. */
export interface OAuthRecordTable {
  id: string
  kind: string
  sealed: string
  grant_id: string | null
  uid: string | null
  user_code: string | null
  client_id: string | null
  /** Whose session, grant, code or refresh token it is. */
  person_id: string | null
  expires_at_ms: number
  consumed_at_ms: number | null
}

/** Whose access tokens are not taken any more, though they have not expired. */
export interface OAuthDenialTable {
  /** `token`, `grant`, `client`, `person`, `key`. */
  kind: string
  id: string
  at_ms: number
  /** Those tokens have all expired by then. */
  expires_at_ms: number
}

/** What access tokens are signed with: one after the other. */
export interface OAuthKeyTable {
  number: number
  kid: string
  /** JSON: a JWK. */
  public_jwk: string
  /** The private one, encrypted with a key that is not in the database. */
  sealed: string
  created_at_ms: number
  signs_from_ms: number
}
