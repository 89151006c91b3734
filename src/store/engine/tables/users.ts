import type { Generated } from 'kysely'

export interface UserTables {
  users: UserTable
  user_recovery_codes: UserRecoveryCodeTable
  passkeys: PasskeyTable
}

/** People who sign in. */
export interface UserTable {
  id: string
  /** Normalized, so that all spellings are equal. */
  email: string
  /** The argon2id hash of the password; `null`: no password. */
  password: string | null
  /** JSON: a list. */
  scopes: string
  /** JSON: a list of ids, or `"*"`. */
  apps: Generated<string>
  created_at_ms: number
  /** Sessions from before then are invalid. */
  signed_in_since_ms: number
  /**
   * The secret of one-time codes, encrypted with a key that is not in the
   * database; `null`: no one-time codes.
   */
  totp: string | null
  /** The number of the newest one-time code that was used. */
  totp_step: number | null
  /** `null`: they may sign in. */
  disabled_at_ms: number | null
  /** The external OpenID provider and its permanent id of this user; both `null`: not linked. */
  openid_issuer: string | null
  openid_subject: string | null
}

/** Each replaces one one-time code. */
interface UserRecoveryCodeTable {
  user_id: string
  /** SHA-256 of the code, in hexadecimal. */
  hash: string
}

/** Keys of WebAuthn authenticators. */
export interface PasskeyTable {
  /** The credential's id, in base64url. */
  id: string
  user_id: string
  name: string
  /** COSE, in base64url. */
  public_key: string
  /** The authenticator's signature counter; 0: it does not count. */
  counter: number
  created_at_ms: number
  used_at_ms: number | null
}
