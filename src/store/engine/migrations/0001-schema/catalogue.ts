import type { ColumnTypes } from '../../migration.ts'

export const catalogue = ({ integer, real, key }: ColumnTypes): string => `
create table software (
  id ${key} primary key,
  name text not null,
  kind text not null,
  category text,
  description text,
  search text not null,
  document text not null,
  origin text not null,
  first_seen_ms ${integer} not null
);

create table software_names (
  name ${key} primary key,
  software_id ${key} not null
);
create index software_names_by_software on software_names (software_id);

create table signatures (
  type ${key} not null,
  value ${key} not null,
  software_id ${key} not null,
  part_b ${key} not null,
  part_c ${key} not null,
  status text not null,
  source text not null,
  provenance text not null,
  first_seen_ms ${integer} not null,
  observations ${integer} not null,
  confidence ${real} not null,
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
  id ${integer} primary key,
  hash text not null,
  merged_at_ms ${integer} not null
);

create table submissions (
  id text primary key,
  created_at_ms ${integer} not null,
  principal text not null,
  type ${key} not null,
  value ${key} not null,
  agent_name text,
  software_id ${key},
  category text,
  user_agent text,
  notes text,
  status text not null,
  reasons text not null,
  duplicate_of text,
  made_software ${integer} not null,
  decided_at_ms ${integer},
  decided_by text,
  rolled_back_at_ms ${integer}
);
create index submissions_by_time on submissions (created_at_ms, id);
create index submissions_by_status on submissions (status, created_at_ms);
create index submissions_by_fingerprint on submissions (value, status);

create table trials (
  type ${key} not null,
  value ${key} not null,
  since_ms ${integer} not null,
  is_open ${integer} not null,
  hits ${integer} not null,
  first_hit_ms ${integer},
  last_hit_ms ${integer},
  addresses text not null,
  verdicts text not null,
  constraint trials_key primary key (type, value)
);
create index trials_by_state on trials (is_open);

create table feedback (
  decision_id text primary key,
  id text not null,
  at_ms ${integer} not null,
  principal text not null,
  told text not null,
  told_software_id text,
  verdict text not null,
  verdict_software_id text
);
create index feedback_by_time on feedback (at_ms);

create table feedback_fingerprints (
  decision_id text not null,
  type ${key} not null,
  value ${key} not null,
  constraint feedback_fingerprints_key primary key (decision_id, type)
);
create index feedback_by_fingerprint on feedback_fingerprints (value, type);

create table agents_seen (
  software_id ${key} primary key,
  first_seen_ms ${integer} not null,
  last_seen_ms ${integer} not null,
  requests ${integer} not null,
  versions text not null default '[]'
);

create table fingerprints_seen (
  type ${key} not null,
  value ${key} not null,
  first_seen_ms ${integer} not null,
  last_seen_ms ${integer} not null,
  requests ${integer} not null,
  addresses ${integer} not null,
  sketch text not null,
  is_named integer not null,
  rank ${real} not null,
  constraint fingerprints_seen_key primary key (type, value)
);
create index fingerprints_seen_by_rank on fingerprints_seen (rank, type, value);
create index fingerprints_seen_by_time on fingerprints_seen (last_seen_ms, type, is_named);
`
