import type { Generated } from 'kysely'

export interface OAuthTables {
  oauth_clients: OAuthClientTable
  oauth_denials: OAuthDenialTable
  oauth_keys: OAuthKeyTable
  oauth_records: OAuthRecordTable
}

/** Clients that request tokens. */
export interface OAuthClientTable {
  id: string
  name: string
  /** SHA-256 of the secret, in hexadecimal; `null`: it has no secret. */
  secret_hash: string | null
  auth_method: string
  /** JSON: a list, as the two after it. */
  grant_types: string
  redirect_uris: string
  scopes: string
  /** JSON: a list of ids, or `"*"`. */
  apps: Generated<string>
  /** JSON: a JWK Set. */
  jwks: string | null
  plan: string
  /** `registration`: it registered itself (RFC 7591). */
  origin: string
  created_at_ms: number
}

/**
 * State of the authorization server: codes, refresh tokens, sessions. Names are
 * digests, and contents are sealed.
 */
export interface OAuthRecordTable {
  id: string
  kind: string
  sealed: string
  grant_id: string | null
  uid: string | null
  user_code: string | null
  client_id: string | null
  /** The owner of the session, grant, code or refresh token. */
  person_id: string | null
  expires_at_ms: number
  consumed_at_ms: number | null
}

/** Access tokens that are refused although they have not expired. */
interface OAuthDenialTable {
  /** `token`, `grant`, `client`, `person`, `key`. */
  kind: string
  id: string
  at_ms: number
  /** The latest expiry of those tokens. */
  expires_at_ms: number
}

/** The keys that sign access tokens, one after the other. */
interface OAuthKeyTable {
  number: number
  kid: string
  /** JSON: a JWK. */
  public_jwk: string
  /** The private key, encrypted with a key that is not in the database. */
  sealed: string
  created_at_ms: number
  signs_from_ms: number
}
