import type { ColumnTypes } from '../../migration.ts'

export const work = ({ integer, key }: ColumnTypes): string => `
create table settings (
  name text primary key,
  value text not null,
  version ${integer} not null,
  changed_at_ms ${integer} not null
);

create table idempotency (
  principal text not null,
  key_digest text not null,
  request_hash text not null,
  status ${integer},
  headers text,
  body text,
  created_at_ms ${integer} not null,
  expires_at_ms ${integer} not null,
  constraint idempotency_key primary key (principal, key_digest)
);
create index idempotency_by_expiry on idempotency (expires_at_ms);

create table policies (
  version ${integer} primary key,
  document text not null,
  hash text not null,
  author text not null,
  restored_version ${integer},
  created_at_ms ${integer} not null
);

create table tasks (
  id text primary key,
  principal text not null,
  type text not null,
  status text not null,
  total ${integer} not null,
  completed ${integer} not null,
  failed ${integer} not null,
  created_at_ms ${integer} not null,
  started_at_ms ${integer},
  finished_at_ms ${integer},
  lease_owner text,
  lease_until_ms ${integer},
  attempts ${integer} not null,
  error text,
  changed_at_ms ${integer} not null default 0,
  context_id ${key}
);
create index tasks_by_status on tasks (status, created_at_ms, id);
create index tasks_by_principal on tasks (principal, created_at_ms, id);
create index tasks_by_end on tasks (finished_at_ms)
  where finished_at_ms is not null;
create index tasks_by_change on tasks (principal, changed_at_ms, id);

create table task_chunks (
  task_id text not null references tasks (id) on delete cascade,
  number ${integer} not null,
  from_item ${integer} not null,
  items text not null,
  results text,
  constraint task_chunks_pk primary key (task_id, number)
);

create table task_callbacks (
  task_id text not null references tasks (id) on delete cascade,
  id ${key} not null,
  url text not null,
  sealed text,
  created_at_ms ${integer} not null,
  told text not null,
  attempts ${integer} not null,
  next_at_ms ${integer},
  error text,
  constraint task_callbacks_pk primary key (task_id, id)
);
create index task_callbacks_by_next on task_callbacks (next_at_ms)
  where next_at_ms is not null;
`
