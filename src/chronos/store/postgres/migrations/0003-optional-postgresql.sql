-- Advice to PostgreSQL itself. Statements of an "optional" migration that the engine at hand does not know are skipped.

-- Keys are compared byte by byte: cheaper than by a language's rules, the order that the port promises, and no index is damaged
-- when the system's language data change. (The distributed engines compare so anyway.)
ALTER TABLE alarms
  ALTER COLUMN owner TYPE TEXT COLLATE "C", ALTER COLUMN id TYPE TEXT COLLATE "C",
  ALTER COLUMN status TYPE TEXT COLLATE "C", ALTER COLUMN kind TYPE TEXT COLLATE "C",
  ALTER COLUMN idempotency_key TYPE TEXT COLLATE "C";
ALTER TABLE occurrences
  ALTER COLUMN owner TYPE TEXT COLLATE "C", ALTER COLUMN alarm_id TYPE TEXT COLLATE "C",
  ALTER COLUMN fire_id TYPE TEXT COLLATE "C";
ALTER TABLE owners
  ALTER COLUMN owner TYPE TEXT COLLATE "C";
ALTER TABLE fire_attempts
  ALTER COLUMN owner TYPE TEXT COLLATE "C", ALTER COLUMN alarm_id TYPE TEXT COLLATE "C",
  ALTER COLUMN fire_id TYPE TEXT COLLATE "C";
ALTER TABLE auth_nonces
  ALTER COLUMN nonce TYPE TEXT COLLATE "C";
ALTER TABLE agent_keys
  ALTER COLUMN owner TYPE TEXT COLLATE "C", ALTER COLUMN public_key TYPE TEXT COLLATE "C";

-- Every occurrence is rewritten at least once (claimed) and then deleted: room for the next version on the same page, and a
-- vacuum after a thousand dead rows instead of after a fifth of the table.
ALTER TABLE occurrences SET (
  fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.02);
-- The counters of a series move with every delivery and stand in no index: a version on the same page touches none.
ALTER TABLE alarms SET (
  fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.05);
ALTER TABLE owners SET (
  fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
ALTER TABLE auth_nonces SET (
  autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
