-- 0001-keys
create table "api_keys" ("id" text primary key, "hash" text not null unique, "name" text not null, "scopes" text not null, "plan" text not null, "created_at_ms" bigint not null, "expires_at_ms" bigint, "revoked_at_ms" bigint, "last_used_at_ms" bigint);
create table "audit" ("id" text primary key, "at_ms" bigint not null, "principal" text not null, "action" text not null, "subject" text, "detail" text not null, "address" text, "request_id" text);
create index "audit_by_time" on "audit" ("at_ms", "id");
create table "settings" ("name" text primary key, "value" text not null, "version" bigint not null, "changed_at_ms" bigint not null);
create table "idempotency" ("principal" text not null, "key_digest" text not null, "request_hash" text not null, "status" bigint, "headers" text, "body" text, "created_at_ms" bigint not null, "expires_at_ms" bigint not null, constraint "idempotency_key" primary key ("principal", "key_digest"));
create index "idempotency_by_expiry" on "idempotency" ("expires_at_ms");
-- 0002-catalogue
create table "software" ("id" text primary key, "name" text not null, "kind" text not null, "category" text, "document" text not null, "origin" text not null, "first_seen_ms" bigint not null);
create table "software_names" ("name" text primary key, "software_id" text not null);
create table "signatures" ("type" text not null, "value" text not null, "software_id" text not null, "status" text not null, "source" text not null, "provenance" text not null, "first_seen_ms" bigint not null, "observations" bigint not null, "confidence" double precision not null, constraint "signatures_key" primary key ("type", "value", "software_id"));
create index "signatures_by_software" on "signatures" ("software_id");
-- 0003-sightings
create table "fingerprints_seen" ("type" text not null, "value" text not null, "first_seen_ms" bigint not null, "last_seen_ms" bigint not null, "requests" bigint not null, "addresses" bigint not null, constraint "fingerprints_seen_key" primary key ("type", "value"));
create table "agents_seen" ("software_id" text primary key, "first_seen_ms" bigint not null, "last_seen_ms" bigint not null, "requests" bigint not null);
-- 0004-submissions
-- 0005-tasks
-- 0006-webhooks
-- 0007-rate-limits
create table "rate_limits" ("key" text primary key, "points" bigint not null, "ends_at_ms" bigint not null);
