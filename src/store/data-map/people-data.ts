import type { AuditTables } from '../engine/tables/audit.ts'
import type { GnapTables } from '../engine/tables/gnap.ts'
import type { KeyTables } from '../engine/tables/keys.ts'
import type { OAuthTables } from '../engine/tables/oauth.ts'
import type { TrustTables } from '../engine/tables/trust.ts'
import type { UserTables } from '../engine/tables/users.ts'
import { ACCOUNT_ID, impersonal, personal, type TableData } from './table-data.ts'

const ACCOUNT = { why: 'to sign in', kept: 'until the account is deleted', erased: 'the account is deleted' }

type PeopleTables = AuditTables & GnapTables & KeyTables & OAuthTables & TrustTables & UserTables

export const PEOPLE_DATA: Readonly<Record<keyof PeopleTables, TableData>> = {
  users: personal(
    {
      email: 'the e-mail address of the account',
      password: 'a hash of the password',
      totp: 'the secret of one-time codes, encrypted',
      openid_subject: 'the id at the OpenID provider',
      id: ACCOUNT_ID,
    },
    ACCOUNT,
    'scopes apps created_at_ms signed_in_since_ms totp_step disabled_at_ms openid_issuer',
  ),
  user_recovery_codes: personal({ user_id: ACCOUNT_ID, hash: 'a hash of a code' }, ACCOUNT, ''),
  passkeys: personal(
    {
      user_id: ACCOUNT_ID,
      name: 'the name of a device',
      public_key: 'a key',
      used_at_ms: 'the last sign-in',
    },
    ACCOUNT,
    'id counter created_at_ms',
  ),
  audit: personal(
    {
      principal: ACCOUNT_ID,
      subject: ACCOUNT_ID,
      address: 'the address of the caller of the API',
      detail: 'the e-mail address of a changed account',
    },
    {
      why: 'to see who changed the installation, and attempts to get in',
      kept: '`retention.audit`',
      erased:
        'the entry stays, because each change must be traceable; the address and the e-mail address are blanked',
    },
    'id at_ms action request_id apps',
  ),
  oauth_records: personal(
    { person_id: ACCOUNT_ID, sealed: 'sessions and consents, encrypted' },
    { why: 'sessions, and access given to programs', kept: 'until it expires', erased: 'deleted' },
    'id kind grant_id uid user_code client_id expires_at_ms consumed_at_ms',
  ),
  oauth_denials: personal(
    { id: ACCOUNT_ID },
    {
      why: 'to refuse the tokens of a deleted account',
      kept: 'until those tokens expire',
      erased: 'stays until those tokens expire',
    },
    'kind at_ms expires_at_ms',
  ),
  gnap_grants: personal(
    { decided_by: ACCOUNT_ID },
    { why: 'access given to programs', kept: 'until it expires', erased: 'deleted' },
    'id state thumbprint jwk display wanted finish scopes interact_hash reference_hash continue_hash next_at_ms decided_at_ms created_at_ms expires_at_ms',
  ),
  gnap_tokens: personal(
    { approved_by: ACCOUNT_ID },
    { why: 'access given to programs', kept: 'until it expires', erased: 'deleted' },
    'id hash manage_hash thumbprint jwk name label scopes is_bearer is_approved approved_at_ms expires_at_ms ends_at_ms revoked_at_ms',
  ),
  api_keys: impersonal(
    'id hash name scopes apps plan created_at_ms expires_at_ms revoked_at_ms last_used_at_ms',
  ),
  oauth_clients: impersonal(
    'id name secret_hash auth_method grant_types redirect_uris scopes apps jwks plan origin created_at_ms',
  ),
  oauth_keys: impersonal('number kid public_jwk sealed created_at_ms signs_from_ms'),
  trust: impersonal('id kind subject name scopes apps plan document created_at_ms'),
}
