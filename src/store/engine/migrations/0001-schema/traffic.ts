import type { ColumnTypes } from '../../migration.ts'

export const traffic = ({ integer, key, serial }: ColumnTypes): string => `
create table sightings (
  number ${serial},
  id text not null unique,
  seen_at_ms ${integer} not null,
  document text not null
);

create table sightings_taken (
  slot text primary key,
  ranges text not null,
  taken_at_ms ${integer} not null
);
create index sightings_taken_by_time on sightings_taken (taken_at_ms, slot);

create table rollups (
  grain_ms ${integer} not null,
  dimension text not null,
  at_ms ${integer} not null,
  key text not null,
  requests ${integer} not null,
  agents ${integer} not null,
  blocked ${integer} not null,
  constraint rollups_key primary key (grain_ms, dimension, at_ms, key)
);

create table rate_limits (
  key text primary key,
  points ${integer} not null,
  ends_at_ms ${integer} not null
);

create table threat_windows (
  key ${key} primary key,
  topic text not null,
  ends_at_ms ${integer} not null,
  count ${integer} not null,
  since_ms ${integer} not null,
  until_ms ${integer} not null,
  event text not null
);
create index threat_windows_by_end on threat_windows (ends_at_ms, key);

create table detections (
  id ${key} primary key,
  at_ms ${integer} not null,
  document text not null
);
create index detections_by_time on detections (at_ms);

create table traffic (
  process ${key} primary key,
  at_ms ${integer} not null,
  document text not null
);
`
