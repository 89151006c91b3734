import type { ColumnTypes } from '../../migration.ts'

export const events = ({ integer, real, key, serial }: ColumnTypes): string => `
create table events (
  number ${serial},
  id ${key} not null unique,
  type text not null,
  at_ms ${integer} not null,
  subject ${key} not null,
  agent text,
  category text,
  severity text,
  confidence ${real},
  data text not null
);
create index events_by_time on events (at_ms, number, type, category, agent, severity, confidence);

create table event_positions (
  name ${key} primary key,
  number ${integer} not null,
  holder text,
  held_until_ms ${integer} not null
);

create table event_storms (
  topic ${key} primary key,
  minute_ms ${integer} not null,
  told ${integer} not null,
  count ${integer} not null,
  since_ms ${integer} not null,
  until_ms ${integer} not null,
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
  enabled ${integer} not null,
  created_at_ms ${integer} not null,
  updated_at_ms ${integer} not null,
  failures ${integer} not null default 0,
  pauses ${integer} not null default 0,
  failing_since_ms ${integer},
  paused_until_ms ${integer},
  last_delivery_at_ms ${integer},
  disabled_at_ms ${integer},
  filters text,
  disabled_reason text
);

create table webhook_secrets (
  id text primary key,
  webhook_id text not null references webhooks (id) on delete cascade,
  sealed text not null,
  created_at_ms ${integer} not null,
  expires_at_ms ${integer}
);
create index webhook_secrets_by_webhook on webhook_secrets (webhook_id);

create table deliveries (
  id text primary key,
  webhook_id text not null references webhooks (id) on delete cascade,
  event_number ${integer} not null references events (number) on delete cascade,
  lane text,
  created_at_ms ${integer} not null,
  next_at_ms ${integer},
  holder text,
  attempts ${integer} not null,
  log text not null,
  outcome text,
  finished_at_ms ${integer}
);
create index deliveries_by_next on deliveries (webhook_id, next_at_ms, event_number, finished_at_ms)
  where finished_at_ms is null;
create index deliveries_by_turn on deliveries (webhook_id, lane, next_at_ms, event_number, id)
  where lane is not null;
create index deliveries_by_event on deliveries (event_number);
create index deliveries_by_time on deliveries (webhook_id, created_at_ms, id);
create index deliveries_by_end on deliveries (finished_at_ms)
  where finished_at_ms is not null;
`
