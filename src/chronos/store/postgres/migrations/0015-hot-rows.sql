-- What a fire changes is one narrow row: the progress of an alarm, its scheduled occurrence and its last attempt. The definition with
-- its texts is another row, which only an edit changes. The ledger has a row for each attempt that a later one has replaced.
--
-- Replicas of the version before this one cannot go on: they read and write tables that are views now.

CREATE TABLE progress (
  bucket                BIGINT  NOT NULL,
  owner                 TEXT    COLLATE "C" NOT NULL,
  alarm_id              TEXT    COLLATE "C" NOT NULL,
  -- 0: the row of the alarm. Otherwise the row of an occurrence beside its schedule, and the instant that it stands for: a trigger, or
  -- an occurrence in delivery whose schedule was replaced meanwhile. Only the occurrence's columns are set there.
  trigger_at            BIGINT  NOT NULL,
  -- How many such rows the alarm has.
  triggers              INTEGER NOT NULL,
  -- The number of edits of the definition, as there: who reads different ones has read the two on either side of an edit.
  edition               INTEGER NOT NULL,
  held_reason           TEXT,
  held_until            BIGINT,
  failure_count         INTEGER,
  last_error            BYTEA,
  -- From here on: what a delivery changes.
  status                TEXT,
  updated_at            BIGINT,
  last_fired_at         BIGINT,
  fire_count            INTEGER,
  scheduled_fires       INTEGER,
  -- The last attempt; NULL: there was none.
  last_scheduled_for    BIGINT,
  last_attempt          INTEGER,
  last_started_at       BIGINT,
  last_finished_at      BIGINT,
  last_outcome          TEXT,
  last_http_status      BIGINT,
  last_attempt_error    BYTEA,
  last_missed_count     BIGINT,
  last_machine_ready_ms BIGINT,
  last_late_because     TEXT,
  -- Whether the alarm is over, and when it or its last attempt ended.
  ended                 BOOLEAN GENERATED ALWAYS AS (status IN ('fired', 'cancelled', 'failed')) STORED,
  aged_at               BIGINT  GENERATED ALWAYS AS (
    CASE WHEN status IN ('fired', 'cancelled', 'failed') THEN GREATEST(updated_at, last_finished_at) ELSE last_finished_at END) STORED,
  -- The pending occurrence; NULL: there is none.
  scheduled_for         BIGINT,
  nominal               BIGINT,
  due_at                BIGINT,
  missed_count          BIGINT,
  -- From when on a claim must look at the row: when it is due or, where somebody holds it, any instant that has passed. What is due
  -- when it is claimed keeps its place. NULL: parked, and nobody holds it.
  look_at               BIGINT  GENERATED ALWAYS AS (LEAST(due_at, claimed_at)) STORED,
  -- From here on: what a claim changes. The revision grows with every write to the row: a writer who read an older one changes nothing
  -- and reads again.
  revision              BIGINT  NOT NULL,
  attempt               INTEGER,
  fence                 INTEGER,
  holder           BIGINT,
  claimed_at            BIGINT,
  -- One check: each costs every statement that writes the table.
  CHECK ((status IS NULL) = (trigger_at <> 0) AND (scheduled_for IS NULL) = (fence IS NULL)
    AND (holder IS NULL) = (claimed_at IS NULL) AND (last_attempt IS NULL) = (last_finished_at IS NULL))
);

-- Tables that Citus distributes get a companion on the same servers.
DO $$
BEGIN
  SET LOCAL citus.multi_shard_modify_mode = 'sequential';
  IF to_regclass('pg_dist_partition') IS NULL THEN RETURN; END IF;
  IF EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = 'alarms'::regclass) THEN
    PERFORM create_distributed_table('progress', 'bucket', colocate_with => 'alarms');
  END IF;
END $$;

-- Alarms that an early version ended have no end: they ended after their last fire, and after they were due.
INSERT INTO progress (
  bucket, owner, alarm_id, trigger_at, triggers, edition, held_reason, held_until, failure_count, last_error, status, updated_at,
  last_fired_at, fire_count, scheduled_fires, last_scheduled_for, last_attempt, last_started_at, last_finished_at, last_outcome,
  last_http_status, last_attempt_error, last_missed_count, last_machine_ready_ms, last_late_because, scheduled_for, nominal, due_at,
  missed_count, revision, attempt, fence, holder, claimed_at)
SELECT a.bucket, a.owner, a.id, 0, COALESCE(t.triggers, 0), 0, o.held_reason, o.held_until, a.failure_count, a.last_error, a.status,
  CASE WHEN a.status IN ('fired', 'failed') THEN GREATEST(a.updated_at, a.last_fired_at, a.fire_at) ELSE a.updated_at END,
  a.last_fired_at, a.fire_count, a.scheduled_fires, f.scheduled_for, f.attempt, f.started_at, f.finished_at, f.outcome,
  f.http_status, f.error, f.missed_count, f.machine_ready_ms, f.late_because, o.scheduled_for, o.nominal, o.due_at,
  o.missed_count, a.revision, o.attempt, o.fence, o.holder, o.claimed_at
FROM alarms AS a
LEFT JOIN occurrences AS o ON o.bucket = a.bucket AND o.owner = a.owner AND o.alarm_id = a.id AND o.source = 'schedule'
LEFT JOIN (
  SELECT bucket, owner, alarm_id, count(*) AS triggers FROM occurrences WHERE source = 'trigger' GROUP BY bucket, owner, alarm_id
) AS t ON t.bucket = a.bucket AND t.owner = a.owner AND t.alarm_id = a.id
LEFT JOIN (
  SELECT DISTINCT ON (bucket, owner, alarm_id) * FROM fire_attempts
  ORDER BY bucket, owner, alarm_id, finished_at DESC, started_at DESC, scheduled_for DESC, attempt DESC
) AS f ON f.bucket = a.bucket AND f.owner = a.owner AND f.alarm_id = a.id;

INSERT INTO progress (
  bucket, owner, alarm_id, trigger_at, triggers, edition, held_reason, held_until, scheduled_for, nominal, due_at, missed_count,
  revision, attempt, fence, holder, claimed_at)
SELECT bucket, owner, alarm_id, scheduled_for, 0, 0, held_reason, held_until, scheduled_for, nominal, due_at, missed_count,
  0, attempt, fence, holder, claimed_at
FROM occurrences WHERE source = 'trigger';

ALTER TABLE progress ADD PRIMARY KEY (bucket, owner, alarm_id, trigger_at);
CREATE INDEX progress_due ON progress (bucket ASC, look_at ASC) INCLUDE (owner) WHERE look_at IS NOT NULL;
CREATE INDEX progress_open ON progress (bucket ASC, owner, status, alarm_id) WHERE status <> 'fired';
CREATE INDEX progress_aged ON progress (bucket ASC, ended, aged_at ASC) WHERE aged_at IS NOT NULL;
-- These two have few rows, and no fire touches them.
CREATE INDEX progress_triggered ON progress (bucket ASC, owner) WHERE trigger_at <> 0 AND due_at IS NOT NULL;
CREATE INDEX progress_held ON progress (bucket ASC, owner) WHERE held_until IS NOT NULL;

DROP TABLE occurrences;

DELETE FROM fire_attempts AS f USING progress AS p
WHERE p.bucket = f.bucket AND p.owner = f.owner AND p.alarm_id = f.alarm_id AND p.trigger_at = 0
  AND p.last_started_at = f.started_at AND p.last_scheduled_for = f.scheduled_for AND p.last_attempt = f.attempt;
ALTER TABLE fire_attempts RENAME TO ledger;
ALTER TABLE ledger DROP CONSTRAINT fire_attempts_pkey;
ALTER TABLE ledger DROP COLUMN fire_id;
ALTER TABLE ledger ADD PRIMARY KEY (bucket, owner, alarm_id, started_at, scheduled_for, attempt);
ALTER INDEX fire_attempts_by_age RENAME TO ledger_by_age;

ALTER TABLE alarms RENAME TO definitions;
DROP INDEX alarms_by_key;
DROP INDEX alarms_aside;
DROP INDEX alarms_over;
ALTER TABLE definitions ADD COLUMN edition INTEGER NOT NULL DEFAULT 0;
-- The key as long as the alarm holds it: a cancelled alarm has released it.
ALTER TABLE definitions ADD COLUMN key_held TEXT COLLATE "C";
UPDATE definitions SET key_held = held_key WHERE held_key IS NOT NULL;
ALTER TABLE definitions DROP COLUMN held_key;
ALTER TABLE definitions RENAME COLUMN key_held TO held_key;
ALTER TABLE definitions DROP COLUMN aside;
ALTER TABLE definitions DROP COLUMN over_from;
ALTER TABLE definitions DROP COLUMN revision;
ALTER TABLE definitions DROP COLUMN failure_count;
ALTER TABLE definitions DROP COLUMN fire_count;
ALTER TABLE definitions DROP COLUMN scheduled_fires;
ALTER TABLE definitions DROP COLUMN updated_at;
ALTER TABLE definitions DROP COLUMN last_fired_at;
ALTER TABLE definitions DROP COLUMN status;
ALTER TABLE definitions DROP COLUMN last_error;
CREATE UNIQUE INDEX definitions_by_key ON definitions (bucket ASC, owner, held_key) WHERE held_key IS NOT NULL;

DROP INDEX IF EXISTS owners_before_buckets;

-- The same in full, for readers of the database: checkers, people.
CREATE VIEW alarms AS
SELECT d.*, p.status, p.failure_count, p.last_error, p.updated_at, p.last_fired_at, p.fire_count, p.scheduled_fires
FROM definitions AS d
JOIN progress AS p ON p.bucket = d.bucket AND p.owner = d.owner AND p.alarm_id = d.id AND p.trigger_at = 0;

CREATE VIEW occurrences AS
SELECT bucket, owner, alarm_id, alarm_id || '@' || scheduled_for AS fire_id,
  CASE WHEN trigger_at = 0 THEN 'schedule' ELSE 'trigger' END AS source, scheduled_for, nominal, due_at, attempt, missed_count, fence,
  holder, claimed_at, held_reason, held_until
FROM progress WHERE scheduled_for IS NOT NULL;

CREATE VIEW fire_attempts AS
SELECT bucket, owner, alarm_id, alarm_id || '@' || scheduled_for AS fire_id, started_at, attempt, scheduled_for, finished_at, outcome,
  http_status, error, missed_count, machine_ready_ms, late_because
FROM ledger
UNION ALL
SELECT bucket, owner, alarm_id, alarm_id || '@' || last_scheduled_for, last_started_at, last_attempt, last_scheduled_for,
  last_finished_at, last_outcome, last_http_status, last_attempt_error, last_missed_count, last_machine_ready_ms, last_late_because
FROM progress WHERE last_attempt IS NOT NULL;

-- Statistics to begin with. Statements are planned once, often while the tables are empty, and a plan that expects few rows reads all of
-- them for each alarm of a batch. So an empty table gets rows, is analyzed, and loses them again. (Citus plans with the values.)
DO $$
BEGIN
  IF to_regclass('pg_dist_partition') IS NOT NULL THEN RETURN; END IF;
  IF EXISTS (SELECT 1 FROM progress) THEN
    ANALYZE definitions;
    ANALYZE progress;
    RETURN;
  END IF;
  INSERT INTO definitions (
    bucket, edition, owner, id, kind, label, wake_message, anchor, jitter_seconds, max_failures, created_at)
  SELECT 0, 0, n::text, n::text, 'once', '', '', 0, 0, 1, 0 FROM generate_series(1, 2000) AS n;
  INSERT INTO progress (
    bucket, owner, alarm_id, trigger_at, triggers, edition, failure_count, status, updated_at, fire_count, scheduled_fires,
    last_scheduled_for, last_attempt, last_started_at, last_finished_at, last_outcome, scheduled_for, nominal, due_at, missed_count,
    revision, attempt, fence)
  SELECT 0, n::text, n::text, 0, 0, 0, 0, CASE WHEN n % 2 = 0 THEN 'fired' ELSE 'active' END, n, 0, 0, n, 1, n, n, 'delivered',
    n, n, n, 0, 0, 0, 0
  FROM generate_series(1, 2000) AS n;
  ANALYZE definitions;
  ANALYZE progress;
  DELETE FROM definitions;
  DELETE FROM progress;
END $$;
