import type { ColumnTypes } from '../../migration.ts'

export const people = ({ integer, key }: ColumnTypes): string => `
create table api_keys (
  id text primary key,
  hash text not null unique,
  name text not null,
  scopes text not null,
  plan text not null,
  created_at_ms ${integer} not null,
  expires_at_ms ${integer},
  revoked_at_ms ${integer},
  last_used_at_ms ${integer}
);

create table audit (
  id text primary key,
  at_ms ${integer} not null,
  principal text not null,
  action text not null,
  subject text,
  detail text not null,
  address text,
  request_id text
);
create index audit_by_time on audit (at_ms, id);

create table users (
  id ${key} primary key,
  email ${key} not null unique,
  password text,
  scopes text not null,
  created_at_ms ${integer} not null,
  signed_in_since_ms ${integer} not null,
  totp text,
  totp_step ${integer},
  disabled_at_ms ${integer},
  openid_issuer ${key},
  openid_subject ${key}
);
create unique index users_by_openid on users (openid_issuer, openid_subject);

create table user_recovery_codes (
  user_id ${key} not null references users (id) on delete cascade,
  hash ${key} not null,
  constraint user_recovery_codes_key primary key (user_id, hash)
);

create table passkeys (
  id text primary key,
  user_id ${key} not null references users (id) on delete cascade,
  name text not null,
  public_key text not null,
  counter ${integer} not null,
  created_at_ms ${integer} not null,
  used_at_ms ${integer}
);
create index passkeys_by_user on passkeys (user_id);

create table trust (
  id text primary key,
  kind text not null,
  subject ${key} not null,
  name text,
  scopes text not null,
  plan text not null,
  document text,
  created_at_ms ${integer} not null
);
create unique index trust_by_subject on trust (kind, subject);

create table oauth_clients (
  id text primary key,
  name text not null,
  secret_hash text,
  auth_method text not null,
  grant_types text not null,
  redirect_uris text not null,
  scopes text not null,
  jwks text,
  plan text not null,
  origin text not null,
  created_at_ms ${integer} not null
);

create table oauth_records (
  id ${key} primary key,
  kind text not null,
  sealed text not null,
  grant_id ${key},
  uid ${key},
  user_code ${key},
  client_id ${key},
  expires_at_ms ${integer} not null,
  consumed_at_ms ${integer},
  person_id ${key}
);
create index oauth_records_by_grant_id on oauth_records (grant_id);
create index oauth_records_by_uid on oauth_records (uid);
create index oauth_records_by_user_code on oauth_records (user_code);
create index oauth_records_by_client_id on oauth_records (client_id);
create index oauth_records_by_expires_at_ms on oauth_records (expires_at_ms);
create index oauth_records_by_person_id on oauth_records (person_id);

create table oauth_denials (
  kind ${key} not null,
  id ${key} not null,
  at_ms ${integer} not null,
  expires_at_ms ${integer} not null,
  constraint oauth_denials_key primary key (kind, id)
);
create index oauth_denials_by_time on oauth_denials (at_ms);
create index oauth_denials_by_end on oauth_denials (expires_at_ms);

create table oauth_keys (
  number ${integer} primary key,
  kid text not null,
  public_jwk text not null,
  sealed text not null,
  created_at_ms ${integer} not null,
  signs_from_ms ${integer} not null
);

create table replays (
  id ${key} primary key,
  expires_at_ms ${integer} not null
);
create index replays_by_end on replays (expires_at_ms);

create table gnap_grants (
  id text primary key,
  state text not null,
  thumbprint text not null,
  jwk text not null,
  display text not null,
  wanted text not null,
  finish text,
  scopes text not null,
  interact_hash text not null unique,
  reference_hash text,
  continue_hash text not null,
  next_at_ms ${integer} not null,
  created_at_ms ${integer} not null,
  expires_at_ms ${integer} not null,
  decided_by ${key},
  decided_at_ms ${integer}
);
create index gnap_grants_by_end on gnap_grants (expires_at_ms);

create table gnap_tokens (
  id text primary key,
  hash text not null unique,
  manage_hash text not null,
  thumbprint text not null,
  jwk text not null,
  name text not null,
  label text,
  scopes text not null,
  is_bearer ${integer} not null,
  is_approved ${integer} not null,
  expires_at_ms ${integer} not null,
  ends_at_ms ${integer} not null,
  revoked_at_ms ${integer},
  approved_by ${key},
  approved_at_ms ${integer}
);
create index gnap_tokens_by_key on gnap_tokens (thumbprint);
create index gnap_tokens_by_end on gnap_tokens (ends_at_ms);
create index gnap_tokens_by_approver on gnap_tokens (approved_by);
`
