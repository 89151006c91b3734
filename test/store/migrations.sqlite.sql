-- 0001-schema
create table software (
  id text primary key,
  name text not null,
  kind text not null,
  category text,
  description text,
  search text not null,
  document text not null,
  origin text not null,
  first_seen_ms integer not null
);
create table software_names (
  name text primary key,
  software_id text not null
);
create index software_names_by_software on software_names (software_id);
create table signatures (
  type text not null,
  value text not null,
  software_id text not null,
  part_b text not null,
  part_c text not null,
  status text not null,
  source text not null,
  provenance text not null,
  first_seen_ms integer not null,
  observations integer not null,
  confidence real not null,
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
  id integer primary key,
  hash text not null,
  merged_at_ms integer not null
);
create table submissions (
  id text primary key,
  created_at_ms integer not null,
  principal text not null,
  type text not null,
  value text not null,
  agent_name text,
  software_id text,
  category text,
  user_agent text,
  notes text,
  status text not null,
  reasons text not null,
  duplicate_of text,
  made_software integer not null,
  decided_at_ms integer,
  decided_by text,
  rolled_back_at_ms integer
);
create index submissions_by_time on submissions (created_at_ms, id);
create index submissions_by_status on submissions (status, created_at_ms);
create index submissions_by_fingerprint on submissions (value, status);
create table trials (
  type text not null,
  value text not null,
  since_ms integer not null,
  is_open integer not null,
  hits integer not null,
  first_hit_ms integer,
  last_hit_ms integer,
  addresses text not null,
  verdicts text not null,
  constraint trials_key primary key (type, value)
);
create index trials_by_state on trials (is_open);
create table feedback (
  decision_id text primary key,
  id text not null,
  at_ms integer not null,
  principal text not null,
  told text not null,
  told_software_id text,
  verdict text not null,
  verdict_software_id text
);
create index feedback_by_time on feedback (at_ms);
create table feedback_fingerprints (
  decision_id text not null,
  type text not null,
  value text not null,
  constraint feedback_fingerprints_key primary key (decision_id, type)
);
create index feedback_by_fingerprint on feedback_fingerprints (value, type);
create table agents_seen (
  software_id text primary key,
  first_seen_ms integer not null,
  last_seen_ms integer not null,
  requests integer not null,
  versions text not null default '[]'
);
create table fingerprints_seen (
  type text not null,
  value text not null,
  first_seen_ms integer not null,
  last_seen_ms integer not null,
  requests integer not null,
  addresses integer not null,
  sketch text not null,
  is_named integer not null,
  rank real not null,
  constraint fingerprints_seen_key primary key (type, value)
);
create index fingerprints_seen_by_rank on fingerprints_seen (rank, type, value);
create index fingerprints_seen_by_time on fingerprints_seen (last_seen_ms, type, is_named);
create table sightings (
  number integer primary key autoincrement,
  id text not null unique,
  seen_at_ms integer not null,
  document text not null
);
create table sightings_taken (
  slot text primary key,
  ranges text not null,
  taken_at_ms integer not null
);
create index sightings_taken_by_time on sightings_taken (taken_at_ms, slot);
create table rollups (
  grain_ms integer not null,
  dimension text not null,
  at_ms integer not null,
  key text not null,
  requests integer not null,
  agents integer not null,
  blocked integer not null,
  constraint rollups_key primary key (grain_ms, dimension, at_ms, key)
);
create table rate_limits (
  key text primary key,
  points integer not null,
  ends_at_ms integer not null
);
create table threat_windows (
  key text primary key,
  topic text not null,
  ends_at_ms integer not null,
  count integer not null,
  since_ms integer not null,
  until_ms integer not null,
  event text not null
);
create index threat_windows_by_end on threat_windows (ends_at_ms, key);
create table detections (
  id text primary key,
  at_ms integer not null,
  document text not null
);
create index detections_by_time on detections (at_ms);
create table traffic (
  process text primary key,
  at_ms integer not null,
  document text not null
);
create table events (
  number integer primary key autoincrement,
  id text not null unique,
  type text not null,
  at_ms integer not null,
  subject text not null,
  agent text,
  category text,
  severity text,
  confidence real,
  data text not null
);
create index events_by_time on events (at_ms, number, type, category, agent, severity, confidence);
create table event_positions (
  name text primary key,
  number integer not null,
  holder text,
  held_until_ms integer not null
);
create table event_storms (
  topic text primary key,
  minute_ms integer not null,
  told integer not null,
  count integer not null,
  since_ms integer not null,
  until_ms integer not null,
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
  enabled integer not null,
  created_at_ms integer not null,
  updated_at_ms integer not null,
  failures integer not null default 0,
  pauses integer not null default 0,
  failing_since_ms integer,
  paused_until_ms integer,
  last_delivery_at_ms integer,
  disabled_at_ms integer,
  filters text,
  disabled_reason text
);
create table webhook_secrets (
  id text primary key,
  webhook_id text not null references webhooks (id) on delete cascade,
  sealed text not null,
  created_at_ms integer not null,
  expires_at_ms integer
);
create index webhook_secrets_by_webhook on webhook_secrets (webhook_id);
create table deliveries (
  id text primary key,
  webhook_id text not null references webhooks (id) on delete cascade,
  event_number integer not null references events (number) on delete cascade,
  lane text,
  created_at_ms integer not null,
  next_at_ms integer,
  holder text,
  attempts integer not null,
  log text not null,
  outcome text,
  finished_at_ms integer
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
  created_at_ms integer not null,
  expires_at_ms integer,
  revoked_at_ms integer,
  last_used_at_ms integer
);
create table audit (
  id text primary key,
  at_ms integer not null,
  principal text not null,
  action text not null,
  subject text,
  detail text not null,
  address text,
  request_id text
);
create index audit_by_time on audit (at_ms, id);
create table users (
  id text primary key,
  email text not null unique,
  password text,
  scopes text not null,
  created_at_ms integer not null,
  signed_in_since_ms integer not null,
  totp text,
  totp_step integer,
  disabled_at_ms integer,
  openid_issuer text,
  openid_subject text
);
create unique index users_by_openid on users (openid_issuer, openid_subject);
create table user_recovery_codes (
  user_id text not null references users (id) on delete cascade,
  hash text not null,
  constraint user_recovery_codes_key primary key (user_id, hash)
);
create table passkeys (
  id text primary key,
  user_id text not null references users (id) on delete cascade,
  name text not null,
  public_key text not null,
  counter integer not null,
  created_at_ms integer not null,
  used_at_ms integer
);
create index passkeys_by_user on passkeys (user_id);
create table trust (
  id text primary key,
  kind text not null,
  subject text not null,
  name text,
  scopes text not null,
  plan text not null,
  document text,
  created_at_ms integer not null
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
  created_at_ms integer not null
);
create table oauth_records (
  id text primary key,
  kind text not null,
  sealed text not null,
  grant_id text,
  uid text,
  user_code text,
  client_id text,
  expires_at_ms integer not null,
  consumed_at_ms integer,
  person_id text
);
create index oauth_records_by_grant_id on oauth_records (grant_id);
create index oauth_records_by_uid on oauth_records (uid);
create index oauth_records_by_user_code on oauth_records (user_code);
create index oauth_records_by_client_id on oauth_records (client_id);
create index oauth_records_by_expires_at_ms on oauth_records (expires_at_ms);
create index oauth_records_by_person_id on oauth_records (person_id);
create table oauth_denials (
  kind text not null,
  id text not null,
  at_ms integer not null,
  expires_at_ms integer not null,
  constraint oauth_denials_key primary key (kind, id)
);
create index oauth_denials_by_time on oauth_denials (at_ms);
create index oauth_denials_by_end on oauth_denials (expires_at_ms);
create table oauth_keys (
  number integer primary key,
  kid text not null,
  public_jwk text not null,
  sealed text not null,
  created_at_ms integer not null,
  signs_from_ms integer not null
);
create table replays (
  id text primary key,
  expires_at_ms integer not null
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
  next_at_ms integer not null,
  created_at_ms integer not null,
  expires_at_ms integer not null,
  decided_by text,
  decided_at_ms integer
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
  is_bearer integer not null,
  is_approved integer not null,
  expires_at_ms integer not null,
  ends_at_ms integer not null,
  revoked_at_ms integer,
  approved_by text,
  approved_at_ms integer
);
create index gnap_tokens_by_key on gnap_tokens (thumbprint);
create index gnap_tokens_by_end on gnap_tokens (ends_at_ms);
create index gnap_tokens_by_approver on gnap_tokens (approved_by);
create table settings (
  name text primary key,
  value text not null,
  version integer not null,
  changed_at_ms integer not null
);
create table idempotency (
  principal text not null,
  key_digest text not null,
  request_hash text not null,
  status integer,
  headers text,
  body text,
  created_at_ms integer not null,
  expires_at_ms integer not null,
  constraint idempotency_key primary key (principal, key_digest)
);
create index idempotency_by_expiry on idempotency (expires_at_ms);
create table policies (
  version integer primary key,
  document text not null,
  hash text not null,
  author text not null,
  restored_version integer,
  created_at_ms integer not null
);
create table tasks (
  id text primary key,
  principal text not null,
  type text not null,
  status text not null,
  total integer not null,
  completed integer not null,
  failed integer not null,
  created_at_ms integer not null,
  started_at_ms integer,
  finished_at_ms integer,
  lease_owner text,
  lease_until_ms integer,
  attempts integer not null,
  error text,
  changed_at_ms integer not null default 0,
  context_id text
);
create index tasks_by_status on tasks (status, created_at_ms, id);
create index tasks_by_principal on tasks (principal, created_at_ms, id);
create index tasks_by_end on tasks (finished_at_ms)
  where finished_at_ms is not null;
create index tasks_by_change on tasks (principal, changed_at_ms, id);
create table task_chunks (
  task_id text not null references tasks (id) on delete cascade,
  number integer not null,
  from_item integer not null,
  items text not null,
  results text,
  constraint task_chunks_pk primary key (task_id, number)
);
create table task_callbacks (
  task_id text not null references tasks (id) on delete cascade,
  id text not null,
  url text not null,
  sealed text,
  created_at_ms integer not null,
  told text not null,
  attempts integer not null,
  next_at_ms integer,
  error text,
  constraint task_callbacks_pk primary key (task_id, id)
);
create index task_callbacks_by_next on task_callbacks (next_at_ms)
  where next_at_ms is not null;
-- 0002-apps
alter table "sightings" add column "app" text not null default 'default';
alter table "events" add column "app" text;
alter table "submissions" add column "purposes" text not null default '[]';
alter table "api_keys" add column "apps" text not null default '"*"';
alter table "users" add column "apps" text not null default '"*"';
alter table "trust" add column "apps" text not null default '"*"';
alter table "oauth_clients" add column "apps" text not null default '"*"';
alter table "webhooks" add column "apps" text not null default '"*"';
alter table "tasks" add column "apps" text not null default '"*"';
alter table policies rename to policies_before;
create table policies (
  app text not null,
  version integer not null,
  document text not null,
  hash text not null,
  author text not null,
  restored_version integer,
  created_at_ms integer not null,
  constraint policies_by_app primary key (app, version)
);
insert into policies (app, version, document, hash, author, restored_version, created_at_ms)
  select '*', version, document, hash, author, restored_version, created_at_ms from policies_before;
drop table policies_before;
create index if not exists sightings_by_app on sightings (app, number);
drop index events_by_time;
create index events_by_time on events (at_ms, number, type, category, agent, severity, confidence, app);
create table if not exists app_rollups (
  grain_ms integer not null,
  app text not null,
  at_ms integer not null,
  counts text not null,
  constraint app_rollups_key primary key (grain_ms, app, at_ms)
);
create index if not exists app_rollups_by_time on app_rollups (grain_ms, at_ms);
create table if not exists campaigns (
  id text primary key,
  found_at_ms integer not null,
  last_seen_ms integer not null,
  document text not null
);
create index if not exists campaigns_by_time on campaigns (found_at_ms, id);
create index if not exists campaigns_by_end on campaigns (last_seen_ms);
create table if not exists campaign_signs (
  number integer primary key autoincrement,
  at_ms integer not null,
  document text not null
);
create table if not exists apps (
  id text primary key,
  name text not null,
  team text,
  upstream text,
  labels text not null,
  created_at_ms integer not null,
  updated_at_ms integer not null
);
create table if not exists app_hosts (
  key text primary key,
  pattern text not null,
  app_id text not null references apps (id) on delete cascade,
  place integer not null
);
create index if not exists app_hosts_by_app on app_hosts (app_id, place);
-- 0003-audit-apps
alter table audit add column apps text not null default '"*"';
-- 0004-traffic
drop index sightings_by_app;
alter table sightings rename to sightings_before;
create table sightings (
  number integer primary key,
  id text not null,
  seen_at_ms integer not null,
  profile integer not null,
  app text not null,
  host text,
  address text not null,
  address_key text,
  method text not null,
  path text not null,
  ja4h_cookies text,
  snapshot real not null,
  request_kind integer not null,
  header_order integer not null,
  target integer not null,
  campaign text
);
create table sighting_parts (
  number integer primary key,
  last_sighting integer not null,
  first_seen_ms integer not null,
  last_seen_ms integer not null
);
create table sighting_profiles (
  id integer primary key autoincrement,
  hash text not null,
  used_at_ms integer not null,
  proxy text not null,
  user_agent text,
  ja4 text,
  ja4_source text,
  no_hello text,
  stable text,
  ja4s text,
  ja4h text,
  ja4x text,
  http2 text,
  program integer not null,
  verdict text not null,
  agent text,
  category text,
  purposes text not null,
  software text,
  confidence real not null,
  name_confidence real not null,
  verified text,
  signer text,
  key text,
  signature_fault text,
  alleged_signer text,
  evidence text not null,
  rule text not null,
  layer text,
  action text not null,
  dry_run integer not null,
  done text not null,
  limited integer not null,
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
-- 0006-sampled
alter table sightings add column sampled real;
-- 0007-partitions
-- 0008-app-quotas
alter table apps add column quota text;
-- 0009-mcp-calls
alter table sightings add column mcp_method text;
alter table sightings add column mcp_tool text;
-- 0010-payments
create table payments (
    id text primary key, identity text not null unique, scheme text not null, state text not null,
    app text not null, rule text not null, account text not null, agent text, key text, payer text,
    host text not null, path text not null, amount integer not null, currency text not null,
    network text, asset text, transaction_id text, why text, purposes text not null, license text,
    decision_id text not null, created_at_ms integer not null, day integer not null,
    lease_until_ms integer not null, settled_at_ms integer, served_at_ms integer, pass_until_ms integer not null,
    refunded_at_ms integer, refund_note text);
create index payments_by_time on payments (created_at_ms, id);
create index payments_by_account on payments (account, day);
create index payments_by_key on payments (key, pass_until_ms);
-- 0011-traffic-outbox
create table traffic_outbox (last_number integer primary key, requests integer not null, lines blob not null);
create table traffic_outbox_state (id integer primary key, last_number integer not null, sending_until integer, sent_number integer not null);
-- 0012-policy-comments
alter table policies add column comment text;
-- 0013-cases
create table cases (
    id text primary key, identity text not null unique, app text, reason text not null,
    severity text not null, campaign text, agent text, ja4 text, address text,
    first_at_ms integer not null, last_at_ms integer not null, events integer not null, requests integer not null,
    status text not null, version integer not null, changed_at_ms integer, changed_by text, note text,
    feedback integer not null);
create index cases_by_time on cases (last_at_ms, id);
alter table events add column case_id text;
create index events_by_case on events (case_id, at_ms, number) where case_id is not null;
