-- Whose keys may answer questions. Rows are never deleted: a key that was revoked cannot come back.
CREATE TABLE approvers (
  -- In order of enrolment.
  seq               INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id           TEXT NOT NULL,
  public_key        TEXT NOT NULL,
  name              TEXT NOT NULL,
  enrolled_at       INTEGER NOT NULL,
  -- What the statement said, and its signatures: by the key itself, and by the one that vouched for it (a user's first has none).
  expires_at        TEXT NOT NULL,
  signature         TEXT NOT NULL,
  voucher           TEXT,
  voucher_signature TEXT,
  revoked_at        INTEGER,
  -- The key that said so; `operator` for a reset.
  revoked_by        TEXT,
  UNIQUE (user_id, public_key)
) STRICT;

-- When an operator began a user's roster anew, and with which row it begins.
CREATE TABLE approver_resets (
  user_id   TEXT NOT NULL,
  at        INTEGER NOT NULL,
  after_seq INTEGER NOT NULL
) STRICT;

-- Programs that hand tasks over for one user.
CREATE TABLE submitters (
  id           TEXT PRIMARY KEY,
  name         TEXT NOT NULL,
  user_id      TEXT NOT NULL,
  -- SHA-256 of the token, which is kept nowhere.
  token_sha256 TEXT NOT NULL UNIQUE,
  created_at   INTEGER NOT NULL,
  revoked_at   INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX submitters_by_user ON submitters (user_id, created_at);
