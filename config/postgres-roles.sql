-- The users of Gatehouse's database in PostgreSQL 15 or newer: one that owns the tables and changes them, for
-- "gatehouse migrate", and one that managers run as, which reads and writes rows and nothing else. To be run once, by a
-- superuser, in the database that is Gatehouse's alone:
--
--   createdb gatehouse
--   psql --dbname gatehouse --file postgres-roles.sql
--   psql --dbname gatehouse --command '\password gatehouse_owner' --command '\password gatehouse_runtime'
--
-- Then, before managers of a new version are started (tables that others own already are handed over first, with
-- "reassign owned by OTHER to gatehouse_owner"):
--
--   GATEHOUSE_STORE_URL=postgres://gatehouse_owner@HOST/gatehouse gatehouse migrate
--
-- and managers with GATEHOUSE_STORE_URL=postgres://gatehouse_runtime@HOST/gatehouse. They make and drop the partitions of
-- requests by the function change_sightings_partition, which runs as its owner.

create role gatehouse_owner login;
create role gatehouse_runtime login;

-- Nobody else makes anything here. PostgreSQL 15 has taken the right away by itself, older databases still give it.
revoke create on schema public from public;
grant usage, create on schema public to gatehouse_owner;
grant usage on schema public to gatehouse_runtime;

-- Of tables that are there, and of those that the owner makes.
grant select, insert, update, delete on all tables in schema public to gatehouse_runtime;
grant usage on all sequences in schema public to gatehouse_runtime;
alter default privileges for role gatehouse_owner in schema public
  grant select, insert, update, delete on tables to gatehouse_runtime;
alter default privileges for role gatehouse_owner in schema public
  grant usage on sequences to gatehouse_runtime;
