-- Every key and index of the hot path begins with the bucket of its owner, so that an engine that spreads tables over servers can keep
-- what belongs to one owner on one of them. And what changes with each fire stands in no index: claiming an occurrence, renewing
-- its lease and recording a delivery rewrite one row each, on its page, and no index entry (heap-only tuples).
--
-- The tables are made anew: what changes stands at the end of a row, so that the log holds little of the rest. Replicas of the version
-- before this one go on, and wait while this transaction runs: new columns have defaults, or are derived from the others. What they
-- cannot do until they are replaced is enrol keys, and their claims read the table from end to end.

-- How many buckets there are: chosen here, once.
CREATE TABLE bucketing (
  only_one BIGINT PRIMARY KEY CHECK (only_one = 1),
  buckets  BIGINT NOT NULL CHECK (buckets BETWEEN 1 AND 4096)
);

ALTER TABLE owners RENAME TO owners_before;
ALTER TABLE alarms RENAME TO alarms_before;
ALTER TABLE occurrences RENAME TO occurrences_before;

CREATE TABLE alarms (
  bucket               BIGINT NOT NULL DEFAULT 0,
  owner                TEXT   NOT NULL,
  id                   TEXT   NOT NULL,
  kind                 TEXT   NOT NULL CHECK (kind IN ('once', 'cron')),
  label                TEXT   NOT NULL,
  wake_message         BYTEA  NOT NULL,
  payload              TEXT,
  conversation_id      TEXT,
  idempotency_key      TEXT,
  delay_seconds        DOUBLE PRECISION,
  fire_at              BIGINT,
  cron_expr            TEXT,
  timezone             TEXT,
  anchor               BIGINT NOT NULL,
  jitter_seconds       DOUBLE PRECISION NOT NULL,
  ends_at              BIGINT,
  max_fires            BIGINT,
  max_failures         BIGINT NOT NULL,
  max_lateness_seconds DOUBLE PRECISION,
  urgent               BIGINT NOT NULL DEFAULT 0 CHECK (urgent IN (0, 1)),
  set_by               TEXT,
  created_at           BIGINT NOT NULL,
  -- The key as long as this alarm holds it.
  held_key             TEXT   GENERATED ALWAYS AS (CASE WHEN status <> 'cancelled' THEN idempotency_key END) STORED,
  -- The status, unless the alarm is where deliveries find and leave it. So lists of the rest are short walks.
  aside                TEXT   GENERATED ALWAYS AS (CASE WHEN status IN ('paused', 'cancelled', 'failed') THEN status END) STORED,
  -- From when on it may be worth a look whether the alarm can be forgotten. A delivery does not move it.
  over_from            BIGINT GENERATED ALWAYS AS (
    CASE WHEN status IN ('cancelled', 'failed') THEN updated_at
      WHEN status = 'paused' THEN NULL
      WHEN kind = 'once' THEN COALESCE(fire_at, created_at)
      WHEN status = 'fired' THEN updated_at END) STORED,
  -- From here on: what a delivery changes.
  revision             BIGINT NOT NULL,
  failure_count        BIGINT NOT NULL CHECK (failure_count >= 0),
  fire_count           BIGINT NOT NULL CHECK (fire_count >= 0),
  scheduled_fires      BIGINT NOT NULL CHECK (scheduled_fires >= 0),
  updated_at           BIGINT NOT NULL,
  last_fired_at        BIGINT,
  status               TEXT   NOT NULL CHECK (status IN ('active', 'paused', 'fired', 'cancelled', 'failed')),
  last_error           BYTEA
);

CREATE TABLE occurrences (
  bucket         BIGINT NOT NULL DEFAULT 0,
  owner          TEXT   NOT NULL,
  alarm_id       TEXT   NOT NULL,
  fire_id        TEXT   NOT NULL,
  source         TEXT   NOT NULL CHECK (source IN ('schedule', 'trigger')),
  scheduled_for  BIGINT NOT NULL,
  nominal        BIGINT NOT NULL,
  due_at         BIGINT,
  missed_count   BIGINT NOT NULL CHECK (missed_count >= 0),
  held_reason    TEXT,
  held_until     BIGINT,
  -- From when on a claim must look at the row: when it is due or, where somebody holds it, any instant that has passed. What is due
  -- when it is claimed keeps its place. NULL: parked, and nobody holds it.
  look_at        BIGINT GENERATED ALWAYS AS (LEAST(due_at, claimed_at)) STORED,
  -- From here on: what a claim changes.
  alarm_revision BIGINT NOT NULL,
  attempt        BIGINT NOT NULL CHECK (attempt >= 0),
  fence          BIGINT NOT NULL CHECK (fence >= 0),
  lease_until    BIGINT,
  claimed_at     BIGINT,
  CHECK ((lease_until IS NULL) = (claimed_at IS NULL))
);

CREATE TABLE owners (
  bucket        BIGINT NOT NULL DEFAULT 0,
  owner         TEXT   NOT NULL,
  open_at_most  BIGINT NOT NULL,
  stored_alarms BIGINT NOT NULL DEFAULT 0,
  stored_bytes  BIGINT NOT NULL DEFAULT 0
);

-- Advice to PostgreSQL: keys are compared byte by byte (as in 0003), and a page has room for the next version of its rows.
ALTER TABLE alarms
  ALTER COLUMN owner TYPE TEXT COLLATE "C", ALTER COLUMN id TYPE TEXT COLLATE "C",
  ALTER COLUMN held_key TYPE TEXT COLLATE "C", ALTER COLUMN aside TYPE TEXT COLLATE "C";
ALTER TABLE occurrences
  ALTER COLUMN owner TYPE TEXT COLLATE "C", ALTER COLUMN alarm_id TYPE TEXT COLLATE "C",
  ALTER COLUMN fire_id TYPE TEXT COLLATE "C";
ALTER TABLE owners
  ALTER COLUMN owner TYPE TEXT COLLATE "C";
ALTER TABLE occurrences SET (
  fillfactor = 40, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE alarms SET (
  fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.05);
ALTER TABLE owners SET (
  fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

INSERT INTO alarms (
  owner, id, kind, label, wake_message, payload, conversation_id, idempotency_key, delay_seconds, fire_at, cron_expr, timezone,
  anchor, jitter_seconds, ends_at, max_fires, max_failures, max_lateness_seconds, urgent, set_by, created_at, revision,
  failure_count, fire_count, scheduled_fires, updated_at, last_fired_at, status, last_error)
SELECT
  owner, id, kind, label, wake_message, payload, conversation_id, idempotency_key, delay_seconds, fire_at, cron_expr, timezone,
  anchor, jitter_seconds, ends_at, max_fires, max_failures, max_lateness_seconds, urgent, set_by, created_at, revision,
  failure_count, fire_count, scheduled_fires, updated_at, last_fired_at, status, last_error
FROM alarms_before;

INSERT INTO occurrences (
  owner, alarm_id, fire_id, source, scheduled_for, nominal, due_at, missed_count, held_reason, held_until, alarm_revision,
  attempt, fence, lease_until, claimed_at)
SELECT
  owner, alarm_id, fire_id, source, scheduled_for, nominal, due_at, missed_count, held_reason, held_until, alarm_revision,
  attempt, fence, lease_until, claimed_at
FROM occurrences_before;

INSERT INTO owners (owner, open_at_most, stored_alarms, stored_bytes)
SELECT owner, open_at_most, stored_alarms, stored_bytes FROM owners_before;

DROP TABLE alarms_before;
DROP TABLE occurrences_before;
DROP TABLE owners_before;

ALTER TABLE alarms ADD PRIMARY KEY (bucket, owner, id);
CREATE UNIQUE INDEX alarms_by_key ON alarms (bucket ASC, owner, held_key) WHERE held_key IS NOT NULL;
CREATE INDEX alarms_aside ON alarms (bucket ASC, owner, aside, id) WHERE aside IS NOT NULL;
CREATE INDEX alarms_over ON alarms (bucket ASC, over_from ASC) WHERE over_from IS NOT NULL;

ALTER TABLE occurrences ADD PRIMARY KEY (bucket, owner, alarm_id, fire_id);
CREATE INDEX occurrences_to_look_at ON occurrences (bucket ASC, look_at ASC) INCLUDE (owner) WHERE look_at IS NOT NULL;
CREATE INDEX occurrences_triggered ON occurrences (bucket ASC, owner) WHERE source = 'trigger' AND due_at IS NOT NULL;

ALTER TABLE owners ADD PRIMARY KEY (bucket, owner);
-- For replicas of the version before this one.
CREATE UNIQUE INDEX owners_before_buckets ON owners (owner);

-- The rest is added to and removed from, and keeps its rows where they are.
ALTER TABLE fire_attempts ADD COLUMN bucket BIGINT NOT NULL DEFAULT 0;
ALTER TABLE fire_attempts DROP CONSTRAINT fire_attempts_pkey;
ALTER TABLE fire_attempts ADD PRIMARY KEY (bucket, owner, alarm_id, started_at, fire_id, attempt);
DROP INDEX fire_attempts_by_age;
CREATE INDEX fire_attempts_by_age ON fire_attempts (bucket ASC, finished_at ASC);

ALTER TABLE fire_receipts ADD COLUMN bucket BIGINT NOT NULL DEFAULT 0;
ALTER TABLE fire_receipts DROP CONSTRAINT fire_receipts_pkey;
ALTER TABLE fire_receipts ADD PRIMARY KEY (bucket, owner, alarm_id, fire_id, stage);
DROP INDEX fire_receipts_by_age;
CREATE INDEX fire_receipts_by_age ON fire_receipts (bucket ASC, recorded_at ASC);

ALTER TABLE agent_keys ADD COLUMN bucket BIGINT NOT NULL DEFAULT 0;
ALTER TABLE agent_keys DROP CONSTRAINT agent_keys_pkey;
ALTER TABLE agent_keys ADD PRIMARY KEY (bucket, owner, public_key);
DROP INDEX agent_keys_pinned;
CREATE UNIQUE INDEX agent_keys_pinned ON agent_keys (bucket ASC, owner) WHERE pinned;
DROP INDEX agent_keys_by_age;
CREATE INDEX agent_keys_by_age ON agent_keys (bucket ASC, enrolled_at ASC);

-- The bucket of a challenge follows from its nonce.
ALTER TABLE auth_nonces ADD COLUMN bucket BIGINT NOT NULL DEFAULT 0;
ALTER TABLE auth_nonces DROP CONSTRAINT auth_nonces_pkey;
ALTER TABLE auth_nonces ADD PRIMARY KEY (bucket, nonce);
DROP INDEX auth_nonces_expiry;
CREATE INDEX auth_nonces_expiry ON auth_nonces (bucket ASC, expires_at ASC);
