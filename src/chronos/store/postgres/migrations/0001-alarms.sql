-- Instants are epoch milliseconds. Every key begins with the owner, so that no statement can reach another owner's row.
-- Nothing here that a distributed engine speaking PostgreSQL's language would not take: no foreign keys (each insert would lock
-- and rewrite the row it points to; the statements themselves keep the tables together), no sequences, no triggers. ASC is
-- written out because some of them hash the first column of an index otherwise.

-- What the owner defined and how far it has come. What may hold any character at all, U+0000 included, is bytea in UTF-8.
CREATE TABLE alarms (
  owner                TEXT   NOT NULL,
  id                   TEXT   NOT NULL,
  -- Grows with every write to this row or to what the alarm owes (claims and renewals apart): a writer who read an older one
  -- changes nothing and reads again.
  revision             BIGINT NOT NULL,
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
  status               TEXT   NOT NULL CHECK (status IN ('active', 'paused', 'fired', 'cancelled', 'failed')),
  failure_count        BIGINT NOT NULL CHECK (failure_count >= 0),
  last_error           BYTEA,
  created_at           BIGINT NOT NULL,
  updated_at           BIGINT NOT NULL,
  last_fired_at        BIGINT,
  fire_count           BIGINT NOT NULL CHECK (fire_count >= 0),
  scheduled_fires      BIGINT NOT NULL CHECK (scheduled_fires >= 0),
  PRIMARY KEY (owner, id)
);

-- Serves lists by status and kind, newest first, and the count of open alarms.
CREATE INDEX alarms_by_status ON alarms (owner, status, kind, id);

CREATE UNIQUE INDEX alarms_idempotency ON alarms (owner, idempotency_key)
  WHERE idempotency_key IS NOT NULL AND status <> 'cancelled';

-- What is owed. Small rows: claiming and renewing touch this table and not the alarms.
CREATE TABLE occurrences (
  owner          TEXT   NOT NULL,
  alarm_id       TEXT   NOT NULL,
  fire_id        TEXT   NOT NULL,
  -- The alarm's revision when this row was last written together with it: a claim that finds another one in the alarm's row has
  -- read the two on either side of a change, and reads the alarm again.
  alarm_revision BIGINT NOT NULL,
  source         TEXT   NOT NULL CHECK (source IN ('schedule', 'trigger')),
  scheduled_for  BIGINT NOT NULL,
  nominal        BIGINT NOT NULL,
  due_at         BIGINT,
  attempt        BIGINT NOT NULL CHECK (attempt >= 0),
  missed_count   BIGINT NOT NULL CHECK (missed_count >= 0),
  fence          BIGINT NOT NULL CHECK (fence >= 0),
  lease_until    BIGINT,
  claimed_at     BIGINT,
  PRIMARY KEY (owner, alarm_id, fire_id),
  CHECK ((lease_until IS NULL) = (claimed_at IS NULL))
);

-- What may be claimed, in the order of falling due. The owner rides along so that passing over one who may not be served just
-- now does not take a look at each of their rows.
CREATE INDEX occurrences_due ON occurrences (due_at ASC) INCLUDE (owner) WHERE due_at IS NOT NULL AND lease_until IS NULL;

-- What somebody holds: as many entries as there are deliveries under way.
CREATE INDEX occurrences_leased ON occurrences (lease_until ASC) INCLUDE (owner) WHERE lease_until IS NOT NULL;

-- A bound on how many alarms of an owner are active or paused, never below the truth. Creates add to it, alarms that come to their
-- end leave it alone; when it reaches the limit they are counted and it becomes exact. So the hot path of deliveries knows
-- nothing of it, and creates of one owner wait for each other only while one of them commits.
CREATE TABLE owners (
  owner        TEXT   PRIMARY KEY,
  open_at_most BIGINT NOT NULL
);

-- The ledger: one row per attempt, in the order in which it is read back.
CREATE TABLE fire_attempts (
  owner         TEXT   NOT NULL,
  alarm_id      TEXT   NOT NULL,
  started_at    BIGINT NOT NULL,
  fire_id       TEXT   NOT NULL,
  attempt       BIGINT NOT NULL CHECK (attempt >= 1),
  scheduled_for BIGINT NOT NULL,
  finished_at   BIGINT NOT NULL,
  outcome       TEXT   NOT NULL CHECK (outcome IN ('delivered', 'failed', 'unknown', 'missed')),
  http_status   BIGINT,
  error         BYTEA,
  missed_count  BIGINT NOT NULL,
  PRIMARY KEY (owner, alarm_id, started_at, fire_id, attempt)
);

-- Serves pruning, oldest first.
CREATE INDEX fire_attempts_by_age ON fire_attempts (finished_at ASC);
