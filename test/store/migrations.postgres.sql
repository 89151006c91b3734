-- 0001-schema
create table software (
  id text collate "C" primary key,
  name text not null,
  kind text not null,
  category text,
  description text,
  search text not null,
  document text not null,
  origin text not null,
  first_seen_ms bigint not null
);
create table software_names (
  name text collate "C" primary key,
  software_id text collate "C" not null
);
create index software_names_by_software on software_names (software_id);
create table signatures (
  type text collate "C" not null,
  value text collate "C" not null,
  software_id text collate "C" not null,
  part_b text collate "C" not null,
  part_c text collate "C" not null,
  status text not null,
  source text not null,
  provenance text not null,
  first_seen_ms bigint not null,
  observations bigint not null,
  confidence double precision not null,
  is_decisive integer not null default 0,
  constraint signatures_key primary key (type, value, software_id)
);
create index signatures_by_software on signatures (software_id, type, value);
create index signatures_by_part_b on signatures (type, part_b, part_c);
create index signatures_by_part_c on signatures (type, part_c, value);
create index signatures_by_time on signatures (first_seen_ms, type, value, software_id);
create index signatures_by_confidence on signatures (confidence, type, value, software_id);
create index signatures_by_observations on signatures (observations, type, value, software_id);
create index signatures_made_here on signatures (type, value, software_id)
  where source <> 'builtin';
create table catalogue_state (
  id bigint primary key,
  hash text not null,
  merged_at_ms bigint not null
);
create table submissions (
  id text primary key,
  created_at_ms bigint not null,
  principal text not null,
  type text collate "C" not null,
  value text collate "C" not null,
  agent_name text,
  software_id text collate "C",
  category text,
  user_agent text,
  notes text,
  status text not null,
  reasons text not null,
  duplicate_of text,
  made_software bigint not null,
  decided_at_ms bigint,
  decided_by text,
  rolled_back_at_ms bigint
);
create index submissions_by_time on submissions (created_at_ms, id);
create index submissions_by_status on submissions (status, created_at_ms);
create index submissions_by_fingerprint on submissions (value, status);
create table trials (
  type text collate "C" not null,
  value text collate "C" not null,
  since_ms bigint not null,
  is_open bigint not null,
  hits bigint not null,
  first_hit_ms bigint,
  last_hit_ms bigint,
  addresses text not null,
  verdicts text not null,
  constraint trials_key primary key (type, value)
);
create index trials_by_state on trials (is_open);
create table feedback (
  decision_id text primary key,
  id text not null,
  at_ms bigint not null,
  principal text not null,
  told text not null,
  told_software_id text,
  verdict text not null,
  verdict_software_id text
);
create index feedback_by_time on feedback (at_ms);
create table feedback_fingerprints (
  decision_id text not null,
  type text collate "C" not null,
  value text collate "C" not null,
  constraint feedback_fingerprints_key primary key (decision_id, type)
);
create index feedback_by_fingerprint on feedback_fingerprints (value, type);
create table agents_seen (
  software_id text collate "C" primary key,
  first_seen_ms bigint not null,
  last_seen_ms bigint not null,
  requests bigint not null,
  versions text not null default '[]'
);
create table fingerprints_seen (
  type text collate "C" not null,
  value text collate "C" not null,
  first_seen_ms bigint not null,
  last_seen_ms bigint not null,
  requests bigint not null,
  addresses bigint not null,
  sketch text not null,
  is_named integer not null,
  rank double precision not null,
  constraint fingerprints_seen_key primary key (type, value)
);
create index fingerprints_seen_by_rank on fingerprints_seen (rank, type, value);
create index fingerprints_seen_by_time on fingerprints_seen (last_seen_ms, type, is_named);
create table sightings (
  number bigserial primary key,
  id text not null unique,
  seen_at_ms bigint not null,
  document text not null
);
create table sightings_taken (
  slot text primary key,
  ranges text not null,
  taken_at_ms bigint not null
);
create index sightings_taken_by_time on sightings_taken (taken_at_ms, slot);
create table rollups (
  grain_ms bigint not null,
  dimension text not null,
  at_ms bigint not null,
  key text not null,
  requests bigint not null,
  agents bigint not null,
  blocked bigint not null,
  constraint rollups_key primary key (grain_ms, dimension, at_ms, key)
);
create table rate_limits (
  key text primary key,
  points bigint not null,
  ends_at_ms bigint not null
);
create table threat_windows (
  key text collate "C" primary key,
  topic text not null,
  ends_at_ms bigint not null,
  count bigint not null,
  since_ms bigint not null,
  until_ms bigint not null,
  event text not null
);
create index threat_windows_by_end on threat_windows (ends_at_ms, key);
create table detections (
  id text collate "C" primary key,
  at_ms bigint not null,
  document text not null
);
create index detections_by_time on detections (at_ms);
create table traffic (
  process text collate "C" primary key,
  at_ms bigint not null,
  document text not null
);
create table events (
  number bigserial primary key,
  id text collate "C" not null unique,
  type text not null,
  at_ms bigint not null,
  subject text collate "C" not null,
  agent text,
  category text,
  severity text,
  confidence double precision,
  data text not null
);
create index events_by_time on events (at_ms, number, type, category, agent, severity, confidence);
create table event_positions (
  name text collate "C" primary key,
  number bigint not null,
  holder text,
  held_until_ms bigint not null
);
create table event_storms (
  topic text collate "C" primary key,
  minute_ms bigint not null,
  told bigint not null,
  count bigint not null,
  since_ms bigint not null,
  until_ms bigint not null,
  addresses text not null,
  fingerprints text not null,
  examples text not null,
  event text not null
);
create table webhooks (
  id text primary key,
  url text not null,
  events text not null,
  description text,
  enabled bigint not null,
  created_at_ms bigint not null,
  updated_at_ms bigint not null,
  failures bigint not null default 0,
  pauses bigint not null default 0,
  failing_since_ms bigint,
  paused_until_ms bigint,
  last_delivery_at_ms bigint,
  disabled_at_ms bigint,
  filters text,
  disabled_reason text
);
create table webhook_secrets (
  id text primary key,
  webhook_id text not null references webhooks (id) on delete cascade,
  sealed text not null,
  created_at_ms bigint not null,
  expires_at_ms bigint
);
create index webhook_secrets_by_webhook on webhook_secrets (webhook_id);
create table deliveries (
  id text primary key,
  webhook_id text not null references webhooks (id) on delete cascade,
  event_number bigint not null references events (number) on delete cascade,
  lane text,
  created_at_ms bigint not null,
  next_at_ms bigint,
  holder text,
  attempts bigint not null,
  log text not null,
  outcome text,
  finished_at_ms bigint
);
create index deliveries_by_next on deliveries (webhook_id, next_at_ms, event_number, finished_at_ms)
  where finished_at_ms is null;
create index deliveries_by_turn on deliveries (webhook_id, lane, next_at_ms, event_number, id)
  where lane is not null;
create index deliveries_by_event on deliveries (event_number);
create index deliveries_by_time on deliveries (webhook_id, created_at_ms, id);
create index deliveries_by_end on deliveries (finished_at_ms)
  where finished_at_ms is not null;
create table api_keys (
  id text primary key,
  hash text not null unique,
  name text not null,
  scopes text not null,
  plan text not null,
  created_at_ms bigint not null,
  expires_at_ms bigint,
  revoked_at_ms bigint,
  last_used_at_ms bigint
);
create table audit (
  id text primary key,
  at_ms bigint not null,
  principal text not null,
  action text not null,
  subject text,
  detail text not null,
  address text,
  request_id text
);
create index audit_by_time on audit (at_ms, id);
create table users (
  id text collate "C" primary key,
  email text collate "C" not null unique,
  password text,
  scopes text not null,
  created_at_ms bigint not null,
  signed_in_since_ms bigint not null,
  totp text,
  totp_step bigint,
  disabled_at_ms bigint,
  openid_issuer text collate "C",
  openid_subject text collate "C"
);
create unique index users_by_openid on users (openid_issuer, openid_subject);
create table user_recovery_codes (
  user_id text collate "C" not null references users (id) on delete cascade,
  hash text collate "C" not null,
  constraint user_recovery_codes_key primary key (user_id, hash)
);
create table passkeys (
  id text primary key,
  user_id text collate "C" not null references users (id) on delete cascade,
  name text not null,
  public_key text not null,
  counter bigint not null,
  created_at_ms bigint not null,
  used_at_ms bigint
);
create index passkeys_by_user on passkeys (user_id);
create table trust (
  id text primary key,
  kind text not null,
  subject text collate "C" not null,
  name text,
  scopes text not null,
  plan text not null,
  document text,
  created_at_ms bigint not null
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
  created_at_ms bigint not null
);
create table oauth_records (
  id text collate "C" primary key,
  kind text not null,
  sealed text not null,
  grant_id text collate "C",
  uid text collate "C",
  user_code text collate "C",
  client_id text collate "C",
  expires_at_ms bigint not null,
  consumed_at_ms bigint,
  person_id text collate "C"
);
create index oauth_records_by_grant_id on oauth_records (grant_id);
create index oauth_records_by_uid on oauth_records (uid);
create index oauth_records_by_user_code on oauth_records (user_code);
create index oauth_records_by_client_id on oauth_records (client_id);
create index oauth_records_by_expires_at_ms on oauth_records (expires_at_ms);
create index oauth_records_by_person_id on oauth_records (person_id);
create table oauth_denials (
  kind text collate "C" not null,
  id text collate "C" not null,
  at_ms bigint not null,
  expires_at_ms bigint not null,
  constraint oauth_denials_key primary key (kind, id)
);
create index oauth_denials_by_time on oauth_denials (at_ms);
create index oauth_denials_by_end on oauth_denials (expires_at_ms);
create table oauth_keys (
  number bigint primary key,
  kid text not null,
  public_jwk text not null,
  sealed text not null,
  created_at_ms bigint not null,
  signs_from_ms bigint not null
);
create table replays (
  id text collate "C" primary key,
  expires_at_ms bigint not null
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
  next_at_ms bigint not null,
  created_at_ms bigint not null,
  expires_at_ms bigint not null,
  decided_by text collate "C",
  decided_at_ms bigint
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
  is_bearer bigint not null,
  is_approved bigint not null,
  expires_at_ms bigint not null,
  ends_at_ms bigint not null,
  revoked_at_ms bigint,
  approved_by text collate "C",
  approved_at_ms bigint
);
create index gnap_tokens_by_key on gnap_tokens (thumbprint);
create index gnap_tokens_by_end on gnap_tokens (ends_at_ms);
create index gnap_tokens_by_approver on gnap_tokens (approved_by);
create table settings (
  name text primary key,
  value text not null,
  version bigint not null,
  changed_at_ms bigint not null
);
create table idempotency (
  principal text not null,
  key_digest text not null,
  request_hash text not null,
  status bigint,
  headers text,
  body text,
  created_at_ms bigint not null,
  expires_at_ms bigint not null,
  constraint idempotency_key primary key (principal, key_digest)
);
create index idempotency_by_expiry on idempotency (expires_at_ms);
create table policies (
  version bigint primary key,
  document text not null,
  hash text not null,
  author text not null,
  restored_version bigint,
  created_at_ms bigint not null
);
create table tasks (
  id text primary key,
  principal text not null,
  type text not null,
  status text not null,
  total bigint not null,
  completed bigint not null,
  failed bigint not null,
  created_at_ms bigint not null,
  started_at_ms bigint,
  finished_at_ms bigint,
  lease_owner text,
  lease_until_ms bigint,
  attempts bigint not null,
  error text,
  changed_at_ms bigint not null default 0,
  context_id text collate "C"
);
create index tasks_by_status on tasks (status, created_at_ms, id);
create index tasks_by_principal on tasks (principal, created_at_ms, id);
create index tasks_by_end on tasks (finished_at_ms)
  where finished_at_ms is not null;
create index tasks_by_change on tasks (principal, changed_at_ms, id);
create table task_chunks (
  task_id text not null references tasks (id) on delete cascade,
  number bigint not null,
  from_item bigint not null,
  items text not null,
  results text,
  constraint task_chunks_pk primary key (task_id, number)
);
create table task_callbacks (
  task_id text not null references tasks (id) on delete cascade,
  id text collate "C" not null,
  url text not null,
  sealed text,
  created_at_ms bigint not null,
  told text not null,
  attempts bigint not null,
  next_at_ms bigint,
  error text,
  constraint task_callbacks_pk primary key (task_id, id)
);
create index task_callbacks_by_next on task_callbacks (next_at_ms)
  where next_at_ms is not null;
-- 0002-apps
alter table "sightings" add column "app" text collate "C" not null default 'default';
alter table "events" add column "app" text collate "C";
alter table "submissions" add column "purposes" text not null default '[]';
alter table "api_keys" add column "apps" text not null default '"*"';
alter table "users" add column "apps" text not null default '"*"';
alter table "trust" add column "apps" text not null default '"*"';
alter table "oauth_clients" add column "apps" text not null default '"*"';
alter table "webhooks" add column "apps" text not null default '"*"';
alter table "tasks" add column "apps" text not null default '"*"';
alter table policies rename to policies_before;
create table policies (
  app text collate "C" not null,
  version bigint not null,
  document text not null,
  hash text not null,
  author text not null,
  restored_version bigint,
  created_at_ms bigint not null,
  constraint policies_by_app primary key (app, version)
);
insert into policies (app, version, document, hash, author, restored_version, created_at_ms)
  select '*', version, document, hash, author, restored_version, created_at_ms from policies_before;
drop table policies_before;
create index if not exists sightings_by_app on sightings (app, number);
drop index events_by_time;
create index events_by_time on events (at_ms, number, type, category, agent, severity, confidence, app);
create table if not exists app_rollups (
  grain_ms bigint not null,
  app text collate "C" not null,
  at_ms bigint not null,
  counts text not null,
  constraint app_rollups_key primary key (grain_ms, app, at_ms)
);
create index if not exists app_rollups_by_time on app_rollups (grain_ms, at_ms);
create table if not exists campaigns (
  id text collate "C" primary key,
  found_at_ms bigint not null,
  last_seen_ms bigint not null,
  document text not null
);
create index if not exists campaigns_by_time on campaigns (found_at_ms, id);
create index if not exists campaigns_by_end on campaigns (last_seen_ms);
create table if not exists campaign_signs (
  number bigserial primary key,
  at_ms bigint not null,
  document text not null
);
create table if not exists apps (
  id text collate "C" primary key,
  name text not null,
  team text collate "C",
  upstream text,
  labels text not null,
  created_at_ms bigint not null,
  updated_at_ms bigint not null
);
create table if not exists app_hosts (
  key text collate "C" primary key,
  pattern text not null,
  app_id text collate "C" not null references apps (id) on delete cascade,
  place bigint not null
);
create index if not exists app_hosts_by_app on app_hosts (app_id, place);
-- 0003-audit-apps
alter table audit add column apps text not null default '"*"';
-- 0004-traffic
drop index sightings_by_app;
alter table sightings rename to sightings_before;
create table sightings (
  number bigint primary key,
  id uuid not null,
  seen_at_ms bigint not null,
  profile bigint not null,
  app text collate "C" not null,
  host text collate "C",
  address text not null,
  address_key text collate "C",
  method text not null,
  path text collate "C" not null,
  ja4h_cookies text,
  snapshot double precision not null,
  request_kind bigint not null,
  header_order bigint not null,
  target bigint not null,
  campaign text collate "C"
);
create table sighting_parts (
  number bigint primary key,
  last_sighting bigint not null,
  first_seen_ms bigint not null,
  last_seen_ms bigint not null
);
create table sighting_profiles (
  id bigserial primary key,
  hash text collate "C" not null,
  used_at_ms bigint not null,
  proxy text collate "C" not null,
  user_agent text,
  ja4 text collate "C",
  ja4_source text,
  no_hello text,
  stable text,
  ja4s text,
  ja4h text collate "C",
  ja4x text,
  http2 text,
  program bigint not null,
  verdict text collate "C" not null,
  agent text collate "C",
  category text collate "C",
  purposes text not null,
  software text,
  confidence double precision not null,
  name_confidence double precision not null,
  verified text,
  signer text,
  key text,
  signature_fault text,
  alleged_signer text,
  evidence text not null,
  rule text collate "C" not null,
  layer text,
  action text not null,
  dry_run bigint not null,
  done text collate "C" not null,
  limited bigint not null,
  forged text not null
);
create unique index sighting_profiles_by_hash on sighting_profiles (hash);
drop table sightings_before;
create unique index sightings_by_id on sightings (id);
create index sightings_by_app on sightings ((number >> 16), app);
create index sightings_by_host on sightings ((number >> 16), host);
create index sightings_by_address on sightings ((number >> 16), address_key);
create index sightings_by_profile on sightings ((number >> 16), profile);
create index sighting_profiles_by_use on sighting_profiles (used_at_ms);
create index sighting_profiles_by_ja4 on sighting_profiles (ja4);
create index sighting_profiles_by_ja4h on sighting_profiles (ja4h);
create index sighting_profiles_by_agent on sighting_profiles (agent);
insert into sighting_parts (number, last_sighting, first_seen_ms, last_seen_ms)
  select number >> 16, max(number), min(seen_at_ms), max(seen_at_ms) from sightings group by number >> 16;
-- 0005-fingerprints
drop index fingerprints_seen_by_time;
drop index fingerprints_seen_by_rank;
alter table fingerprints_seen set (fillfactor = 50);
-- 0006-sampled
alter table sightings add column sampled double precision;
-- 0007-partitions
alter table sightings rename to sightings_first;
drop index sightings_by_id;
alter index sightings_by_app rename to sightings_first_by_app;
alter index sightings_by_host rename to sightings_first_by_host;
alter index sightings_by_address rename to sightings_first_by_address;
alter index sightings_by_profile rename to sightings_first_by_profile;
create table sightings (like sightings_first) partition by range (number);
alter table sightings add primary key (number);
create index sightings_by_id on sightings (id);
create index sightings_by_app on sightings ((number >> 16), app);
create index sightings_by_host on sightings ((number >> 16), host);
create index sightings_by_address on sightings ((number >> 16), address_key);
create index sightings_by_profile on sightings ((number >> 16), profile);
do $$ begin execute format('alter table sightings attach partition sightings_first for values from (minvalue) to (%s)', (extract(epoch from now())::bigint / 60) << 24); end $$;
do $do$ begin execute format($format$ create function change_sightings_partition(first bigint, beyond bigint, is_wanted boolean) returns void language plpgsql security definer set search_path = %1$I, pg_temp set lock_timeout = '1500ms' as $body$ declare part text := case when first = 0 then 'sightings_first' else concat_ws('_', 'sightings', first, beyond) end; begin if not (has_table_privilege(session_user, '%1$I.sightings', 'insert') and has_table_privilege(session_user, '%1$I.sightings', 'delete')) then raise insufficient_privilege using message = 'permission denied for table sightings'; end if; if not is_wanted then execute format('drop table if exists %%I', part); elsif to_regclass(part) is null then execute format('create table %%I (like sightings)', part); execute format('alter table sightings attach partition %%I for values from (%%s) to (%%s)', part, first << 24, beyond << 24); end if; end $body$ $format$, current_schema()); end $do$;
-- 0008-app-quotas
alter table apps add column quota text;
-- 0009-mcp-calls
alter table sightings add column mcp_method text;
alter table sightings add column mcp_tool text;
-- 0010-payments
create table payments (
    id text collate "C" primary key, identity text collate "C" not null unique, scheme text collate "C" not null, state text collate "C" not null,
    app text collate "C" not null, rule text collate "C" not null, account text collate "C" not null, agent text collate "C", key text collate "C", payer text collate "C",
    host text collate "C" not null, path text collate "C" not null, amount bigint not null, currency text collate "C" not null,
    network text collate "C", asset text collate "C", transaction_id text collate "C", why text collate "C", purposes text not null, license text collate "C",
    decision_id text collate "C" not null, created_at_ms bigint not null, day bigint not null,
    lease_until_ms bigint not null, settled_at_ms bigint, served_at_ms bigint, pass_until_ms bigint not null,
    refunded_at_ms bigint, refund_note text);
create index payments_by_time on payments (created_at_ms, id);
create index payments_by_account on payments (account, day);
create index payments_by_key on payments (key, pass_until_ms);
-- 0011-traffic-outbox
create table traffic_outbox (last_number bigint primary key, requests bigint not null, lines bytea not null);
create table traffic_outbox_state (id bigint primary key, last_number bigint not null, sending_until bigint, sent_number bigint not null);
-- 0012-policy-comments
alter table policies add column comment text;
-- 0013-cases
create table cases (
    id text collate "C" primary key, identity text collate "C" not null unique, app text collate "C", reason text collate "C" not null,
    severity text collate "C" not null, campaign text collate "C", agent text collate "C", ja4 text collate "C", address text collate "C",
    first_at_ms bigint not null, last_at_ms bigint not null, events bigint not null, requests bigint not null,
    status text collate "C" not null, version bigint not null, changed_at_ms bigint, changed_by text collate "C", note text,
    feedback bigint not null);
create index cases_by_time on cases (last_at_ms, id);
alter table events add column case_id text collate "C";
create index events_by_case on events (case_id, at_ms, number) where case_id is not null;
