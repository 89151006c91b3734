export interface UserTables {
  users: UserTable
  user_recovery_codes: UserRecoveryCodeTable
  passkeys: PasskeyTable
}

/** People who sign in. */
export interface UserTable {
  id: string
  /** In the one form that all spellings of it have. */
  email: string
  /** What a password is compared with (argon2id); `null`: none opens anything. */
  password: string | null
  /** JSON: a list. */
  scopes: string
  created_at_ms: number
  /** Who signed in before is not signed in any more. */
  signed_in_since_ms: number
  /** What one-time codes are made of, encrypted with a key that is not in the database; `null`: none is asked for. */
  totp: string | null
  /** The newest one-time code that was used, by its number. */
  totp_step: number | null
  /** `null`: they may sign in. */
  disabled_at_ms: number | null
  /** The OpenID provider elsewhere that says who they are, and what it calls them for good; `null`, both: none does. */
  openid_issuer: string | null
  openid_subject: string | null
}

/** Each in the place of one one-time code. */
export interface UserRecoveryCodeTable {
  user_id: string
  /** SHA-256 of it, in hexadecimal. */
  hash: string
}

/** What authenticators of people sign with (WebAuthn). */
export interface PasskeyTable {
  /** Of the credential: base64url. */
  id: string
  user_id: string
  name: string
  /** COSE, in base64url. */
  public_key: string
  /** What the authenticator has counted up to; 0: it does not. */
  counter: number
  created_at_ms: number
  used_at_ms: number | null
}
