-- What a fire changes is one narrow row: the progress of an alarm, its scheduled occurrence and its last attempt. The definition with
-- its texts is another row, which only an edit changes. The ledger has a row for each attempt that a later one has replaced.

CREATE TABLE definitions (
  seq                  INTEGER PRIMARY KEY,
  owner                TEXT    NOT NULL,
  id                   TEXT    NOT NULL,
  kind                 TEXT    NOT NULL CHECK (kind IN ('once', 'cron')),
  label                TEXT    NOT NULL,
  conversation_id      TEXT,
  idempotency_key      TEXT,
  delay_seconds        REAL,
  fire_at              INTEGER,
  cron_expr            TEXT,
  timezone             TEXT,
  anchor               INTEGER NOT NULL,
  jitter_seconds       REAL    NOT NULL,
  ends_at              INTEGER,
  max_fires            INTEGER,
  max_failures         INTEGER NOT NULL,
  max_lateness_seconds REAL,
  created_at           INTEGER NOT NULL,
  urgent               INTEGER NOT NULL DEFAULT 0 CHECK (urgent IN (0, 1)),
  set_by               TEXT,
  wake_computer        INTEGER NOT NULL DEFAULT 0 CHECK (wake_computer IN (0, 1)),
  wake_message         TEXT    NOT NULL,
  payload              TEXT,
  UNIQUE (owner, id)
) STRICT;

CREATE TABLE progress (
  alarm                INTEGER PRIMARY KEY REFERENCES definitions (seq),
  owner                INTEGER NOT NULL,
  status               TEXT    NOT NULL CHECK (status IN ('active', 'paused', 'fired', 'cancelled', 'failed')),
  failure_count        INTEGER NOT NULL CHECK (failure_count >= 0),
  last_error           TEXT,
  updated_at           INTEGER NOT NULL,
  last_fired_at        INTEGER,
  fire_count           INTEGER NOT NULL CHECK (fire_count >= 0),
  scheduled_fires      INTEGER NOT NULL CHECK (scheduled_fires >= 0),
  -- The pending occurrence of the alarm's own schedule; NULL: there is none.
  scheduled_for        INTEGER,
  nominal              INTEGER,
  due_at               INTEGER,
  -- Both as they were before the lease, where there is one.
  attempt              INTEGER CHECK (attempt >= 0),
  fence                INTEGER CHECK (fence >= 0),
  missed_count         INTEGER CHECK (missed_count >= 0),
  held_reason          TEXT,
  held_until           INTEGER,
  -- The last attempt; NULL: there was none.
  last_scheduled_for   INTEGER,
  last_attempt         INTEGER CHECK (last_attempt >= 1),
  last_started_at      INTEGER,
  last_finished_at     INTEGER,
  last_outcome         TEXT    CHECK (last_outcome IN ('delivered', 'failed', 'unknown', 'missed')),
  last_http_status     INTEGER,
  last_attempt_error   TEXT,
  last_missed_count    INTEGER,
  last_machine_ready_ms INTEGER,
  last_late_because    TEXT,
  CHECK ((scheduled_for IS NULL) = (fence IS NULL)),
  CHECK ((last_attempt IS NULL) = (last_finished_at IS NULL))
) STRICT;

-- Triggered occurrences, and occurrences in delivery whose schedule was replaced meanwhile.
CREATE TABLE triggers (
  alarm         INTEGER NOT NULL REFERENCES definitions (seq),
  scheduled_for INTEGER NOT NULL,
  owner         INTEGER NOT NULL,
  nominal       INTEGER NOT NULL,
  due_at        INTEGER,
  -- Both as they were before the lease, where there is one.
  attempt       INTEGER NOT NULL CHECK (attempt >= 0),
  fence         INTEGER NOT NULL CHECK (fence >= 0),
  missed_count  INTEGER NOT NULL CHECK (missed_count >= 0),
  held_reason   TEXT,
  held_until    INTEGER,
  PRIMARY KEY (alarm, scheduled_for)
) STRICT, WITHOUT ROWID;

INSERT INTO definitions (
  seq, owner, id, kind, label, conversation_id, idempotency_key, delay_seconds, fire_at, cron_expr, timezone, anchor,
  jitter_seconds, ends_at, max_fires, max_failures, max_lateness_seconds, created_at, urgent, set_by, wake_computer, wake_message, payload)
SELECT seq, owner, id, kind, label, conversation_id, idempotency_key, delay_seconds, fire_at, cron_expr, timezone, anchor, jitter_seconds,
  ends_at, max_fires, max_failures, max_lateness_seconds, created_at, urgent, set_by, wake_computer, wake_message, payload
FROM alarms JOIN alarm_texts USING (seq) ORDER BY seq;

-- The alarm that holds a key: a cancelled one has released it.
CREATE TABLE held_keys (
  owner           TEXT    NOT NULL,
  idempotency_key TEXT    NOT NULL,
  alarm           INTEGER NOT NULL,
  PRIMARY KEY (owner, idempotency_key)
) STRICT, WITHOUT ROWID;
INSERT INTO held_keys (owner, idempotency_key, alarm)
SELECT owner, idempotency_key, seq FROM alarms WHERE idempotency_key IS NOT NULL AND status <> 'cancelled';

-- Alarms that no delivery finds or leaves in this status, for lists, newest first.
CREATE TABLE aside (
  owner  TEXT    NOT NULL,
  status TEXT    NOT NULL CHECK (status IN ('paused', 'cancelled', 'failed')),
  kind   TEXT    NOT NULL,
  id     TEXT    NOT NULL,
  alarm  INTEGER NOT NULL,
  PRIMARY KEY (owner, status, kind, id)
) STRICT, WITHOUT ROWID;
INSERT INTO aside (owner, status, kind, id, alarm)
SELECT owner, status, kind, id, seq FROM alarms WHERE status IN ('paused', 'cancelled', 'failed');

-- The active alarms of an owner. An alarm that a delivery ended leaves it a moment later, together with others: an index would cost
-- every fire a page.
CREATE TABLE active (
  owner INTEGER NOT NULL,
  alarm INTEGER NOT NULL,
  PRIMARY KEY (owner, alarm)
) STRICT, WITHOUT ROWID;
INSERT INTO active (owner, alarm)
SELECT w.seq, a.seq FROM alarms AS a JOIN owners AS w ON w.owner = a.owner WHERE a.status = 'active' ORDER BY w.seq, a.seq;

-- The attempt that finished last; of several, the one that was recorded last.
CREATE TEMP TABLE last_attempts AS
SELECT alarm, max(finished_at) AS at, max(seq) AS seq FROM ledger AS l
WHERE finished_at = (SELECT max(finished_at) FROM ledger WHERE alarm = l.alarm) GROUP BY alarm;
CREATE UNIQUE INDEX temp.last_attempts_of ON last_attempts (alarm);

INSERT INTO progress (
  alarm, owner, status, failure_count, last_error, updated_at, last_fired_at, fire_count, scheduled_fires, scheduled_for, nominal, due_at,
  attempt, fence, missed_count, held_reason, held_until, last_scheduled_for, last_attempt, last_started_at, last_finished_at,
  last_outcome, last_http_status, last_attempt_error, last_missed_count, last_machine_ready_ms, last_late_because)
SELECT a.seq, w.seq, a.status, a.failure_count, a.last_error, a.updated_at, a.last_fired_at, a.fire_count, a.scheduled_fires,
  o.scheduled_for, o.nominal, o.due_at, o.attempt, o.fence, o.missed_count, o.held_reason, o.held_until,
  f.scheduled_for, f.attempt, f.started_at, f.finished_at, f.outcome, f.http_status, f.error, f.missed_count, f.machine_ready_ms,
  f.late_because
FROM alarms AS a JOIN owners AS w ON w.owner = a.owner
  LEFT JOIN owed AS o ON o.alarm = a.seq AND o.source = 'schedule'
  LEFT JOIN last_attempts AS t ON t.alarm = a.seq LEFT JOIN ledger AS f ON f.seq = t.seq
ORDER BY a.seq;

INSERT INTO triggers (alarm, scheduled_for, owner, nominal, due_at, attempt, fence, missed_count, held_reason, held_until)
SELECT alarm, scheduled_for, owner, nominal, due_at, attempt, fence, missed_count, held_reason, held_until
FROM owed WHERE source = 'trigger';

DROP VIEW occurrences;
DROP VIEW fire_attempts;
DROP TABLE owed;

ALTER TABLE ledger RENAME TO former_ledger;
DROP INDEX ledger_of_alarm;
DROP INDEX ledger_by_age;
CREATE TABLE ledger (
  seq              INTEGER PRIMARY KEY,
  alarm            INTEGER NOT NULL,
  scheduled_for    INTEGER NOT NULL,
  attempt          INTEGER NOT NULL CHECK (attempt >= 1),
  started_at       INTEGER NOT NULL,
  finished_at      INTEGER NOT NULL,
  outcome          TEXT    NOT NULL CHECK (outcome IN ('delivered', 'failed', 'unknown', 'missed')),
  http_status      INTEGER,
  error            TEXT,
  missed_count     INTEGER NOT NULL,
  machine_ready_ms INTEGER,
  late_because     TEXT
) STRICT;
INSERT INTO ledger (
  seq, alarm, scheduled_for, attempt, started_at, finished_at, outcome, http_status, error, missed_count, machine_ready_ms, late_because)
SELECT seq, alarm, scheduled_for, attempt, started_at, finished_at, outcome, http_status, error, missed_count, machine_ready_ms,
  late_because
FROM former_ledger WHERE seq NOT IN (SELECT seq FROM last_attempts) ORDER BY seq;
DROP TABLE former_ledger;
DROP TABLE last_attempts;
-- Serves reading an alarm's ledger, latest first.
CREATE INDEX ledger_of_alarm ON ledger (alarm, started_at);
-- Serves pruning, oldest first.
CREATE INDEX ledger_by_age ON ledger (finished_at);

ALTER TABLE fire_receipts RENAME TO former_receipts;
DROP INDEX fire_receipts_by_age;
CREATE TABLE fire_receipts (
  owner           TEXT    NOT NULL,
  alarm_id        TEXT    NOT NULL,
  fire_id         TEXT    NOT NULL,
  stage           TEXT    NOT NULL,
  -- When it happened, by the machine's clock.
  at              INTEGER NOT NULL,
  -- Of turn_finished: ok, failed or unknown.
  outcome         TEXT    CHECK (outcome IN ('ok', 'failed', 'unknown')),
  error           TEXT,
  turn_id         TEXT,
  conversation_id TEXT,
  recorded_at     INTEGER NOT NULL,
  retry_at        INTEGER,
  reply           TEXT,
  PRIMARY KEY (owner, alarm_id, fire_id, stage),
  FOREIGN KEY (owner, alarm_id) REFERENCES definitions (owner, id)
) STRICT, WITHOUT ROWID;
INSERT INTO fire_receipts (
  owner, alarm_id, fire_id, stage, at, outcome, error, turn_id, conversation_id, recorded_at, retry_at, reply)
SELECT owner, alarm_id, fire_id, stage, at, outcome, error, turn_id, conversation_id, recorded_at, retry_at, reply
FROM former_receipts;
DROP TABLE former_receipts;
-- Serves pruning, oldest first.
CREATE INDEX fire_receipts_by_age ON fire_receipts (recorded_at);

DROP TABLE alarm_texts;
DROP TABLE alarms;

-- Serves the question when the computer has to be awake next.
CREATE INDEX definitions_waking ON definitions (seq) WHERE wake_computer = 1;

-- What may be tried, of all owners, in the order of falling due.
CREATE INDEX progress_due ON progress (due_at, owner) WHERE due_at IS NOT NULL;
CREATE INDEX triggers_due ON triggers (due_at, owner) WHERE due_at IS NOT NULL;
-- How many triggers of an owner wait.
CREATE INDEX triggers_waiting ON triggers (owner) WHERE due_at IS NOT NULL;
-- Serves deleting alarms that ended, longest ago first.
CREATE INDEX progress_ended ON progress (updated_at) WHERE status IN ('fired', 'cancelled', 'failed');

-- The same in full, for readers of the file: the move to PostgreSQL, checkers, people.
CREATE VIEW alarms AS
SELECT d.*, p.status, p.failure_count, p.last_error, p.updated_at, p.last_fired_at, p.fire_count, p.scheduled_fires
FROM definitions AS d CROSS JOIN progress AS p ON p.alarm = d.seq;

CREATE VIEW occurrences AS
SELECT d.owner, d.id AS alarm_id, d.id || '@' || o.scheduled_for AS fire_id, o.source, o.scheduled_for, o.nominal, o.due_at,
  coalesce(l.attempt, o.attempt) AS attempt, o.missed_count, coalesce(l.fence, o.fence) AS fence, l.lease_until, l.claimed_at,
  o.held_reason, o.held_until
FROM (
  SELECT alarm, 'schedule' AS source, scheduled_for, nominal, due_at, attempt, missed_count, fence, held_reason, held_until
  FROM progress WHERE scheduled_for IS NOT NULL
  UNION ALL
  SELECT alarm, 'trigger', scheduled_for, nominal, due_at, attempt, missed_count, fence, held_reason, held_until FROM triggers
) AS o JOIN definitions AS d ON d.seq = o.alarm
  LEFT JOIN leases AS l ON l.alarm = o.alarm AND l.scheduled_for = o.scheduled_for;

CREATE VIEW fire_attempts AS
SELECT d.owner, d.id AS alarm_id, f.started_at, d.id || '@' || f.scheduled_for AS fire_id, f.attempt, f.scheduled_for, f.finished_at,
  f.outcome, f.http_status, f.error, f.missed_count, f.machine_ready_ms, f.late_because
FROM (
  SELECT alarm, scheduled_for, attempt, started_at, finished_at, outcome, http_status, error, missed_count, machine_ready_ms, late_because
  FROM ledger
  UNION ALL
  SELECT alarm, last_scheduled_for, last_attempt, last_started_at, last_finished_at, last_outcome, last_http_status, last_attempt_error,
    last_missed_count, last_machine_ready_ms, last_late_because
  FROM progress WHERE last_attempt IS NOT NULL
) AS f JOIN definitions AS d ON d.seq = f.alarm;
