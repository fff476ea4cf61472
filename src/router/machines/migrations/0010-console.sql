-- The console of a fleet: what a person's credential may do besides, sessions, and codes that open one. Nothing here opens anything by
-- itself: of cookies and codes only digests are kept, and what a session may do is sealed under its cookie.
ALTER TABLE person_tokens ADD COLUMN alarm_key TEXT;    -- the person's key at chronosd, 64 hex digits; NULL: none was enrolled
ALTER TABLE person_tokens ADD COLUMN alarm_mark TEXT;   -- the operator's word that this key is a person's
ALTER TABLE person_tokens ADD COLUMN submitter TEXT;    -- the id of the person's submitter at the executor

CREATE TABLE console_sessions (
  base       TEXT    PRIMARY KEY,   -- the path that its pages are below
  user_id    TEXT    NOT NULL,
  credential TEXT    NOT NULL,      -- the id of the person's token; the session ends with it
  digest     TEXT    NOT NULL,      -- SHA-256 of the cookie, hex
  sealed     TEXT    NOT NULL,      -- the person's rights, under the cookie
  zone       TEXT,                  -- IANA, of the person; NULL: the router's own
  started_at INTEGER NOT NULL,      -- epoch milliseconds, as the others
  used_at    INTEGER NOT NULL       -- to the minute
) STRICT, WITHOUT ROWID;
CREATE INDEX console_sessions_by_user ON console_sessions (user_id, used_at);

CREATE TABLE console_codes (
  digest     TEXT    PRIMARY KEY,   -- SHA-256 of the code, hex; the row goes when it is used
  user_id    TEXT    NOT NULL,
  credential TEXT    NOT NULL,
  sealed     TEXT    NOT NULL,      -- the person's rights, under the code
  zone       TEXT,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Persons change their own machine, too.
CREATE TABLE machine_changes_anew (
  seq     INTEGER PRIMARY KEY,
  user_id TEXT    NOT NULL,
  at      INTEGER NOT NULL,
  actor   TEXT    NOT NULL CHECK (actor IN ('admin', 'router', 'person')),
  action  TEXT    NOT NULL,
  fields  TEXT    NOT NULL,   -- the names of what changed: a JSON list
  state   TEXT    NOT NULL,   -- of the machine afterwards
  reason  TEXT
) STRICT;
INSERT INTO machine_changes_anew SELECT seq, user_id, at, actor, action, fields, state, reason FROM machine_changes;
DROP TABLE machine_changes;
ALTER TABLE machine_changes_anew RENAME TO machine_changes;
CREATE INDEX machine_changes_by_user ON machine_changes (user_id, seq);
